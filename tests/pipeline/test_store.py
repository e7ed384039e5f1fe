"""Tests that a store changes only by whole runs, even if a run is interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PipelineError
from pipeline.manifest import File, Manifest, StoreState, applied, folded, overlap, united
from pipeline.ranges import Range
from pipeline.store import Store
from pipeline.topics import PartitionName


class Ended(Exception):
    """Simulates the end of the process."""


def file(name: str, first: int, last: int, topic: str = "t", quarantined: bool = False) -> File:
    folder = "_quarantine/" if quarantined else ""
    return File(f"{folder}topic={topic}/date=d/hour=h/{name}", topic, 0, first, last, last - first + 1, quarantined)


def manifest(sequence: int, *files: File, removed: tuple[str, ...] = (), topic_id: str = "a", **more: Any) -> Manifest:
    start, end = min(one.first for one in files), max(one.last for one in files) + 1
    return Manifest(
        sequence, f"run{sequence}", 0, {"t": topic_id}, {"t": (0,)}, [Range("t", 0, start, end)], files, removed, **more
    )


def stage(store: Store, made: Manifest) -> None:
    for one in made.added:
        path = store.staged(made.run, one)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(one.path)


def committed(store: Store, made: Manifest, end_at: str | None = None) -> None:
    def at(stage: str) -> None:
        if stage == end_at:
            raise Ended

    stage(store, made)
    store.commit(made, at)


def parquet(store: Store) -> list[str]:
    """Returns the files that a reader without knowledge of manifests sees."""
    paths = (path.relative_to(store.root).as_posix() for path in store.root.rglob("*.parquet"))
    return sorted(path for path in paths if not path.startswith("_"))


A, B, C = file("a.parquet", 0, 9), file("b.parquet", 10, 19), file("c.parquet", 0, 9)


def test_files_of_a_run_appear_in_their_places(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing():
        committed(store, manifest(1, A, B, file("q.parquet", 20, 20, quarantined=True)))

    assert parquet(store) == [A.path, B.path]
    state = store.reading()
    assert state.records(quarantined=False) == 20
    assert state.records(quarantined=True) == 1
    assert (tmp_path / "_quarantine/topic=t/date=d/hour=h/q.parquet").exists()


@pytest.mark.parametrize(("end_at", "there"), [("synced", [A.path]), ("committed", [C.path]), ("publishing", [C.path])])
def test_a_run_is_there_wholly_or_not_at_all(tmp_path: Path, end_at: str, there: list[str]) -> None:
    store = Store(tmp_path)
    with store.writing():
        committed(store, manifest(1, A))
    with pytest.raises(Ended), store.writing():
        committed(store, manifest(2, C, removed=(A.path,)), end_at)

    assert [one.path for one in store.reading().files_of()] == there
    with store.writing() as state:
        assert [one.path for one in state.files_of()] == there
    assert parquet(store) == there
    assert not (tmp_path / "_staging").exists()


def test_a_dropped_topic_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing():
        committed(store, manifest(1, A, B))
    with store.writing():
        committed(store, manifest(2, C, topic_id="b", dropped=("t",)))

    state = store.reading()
    assert parquet(store) == [C.path]
    assert (state.topics, state.covered) == ({"t": "b"}, {PartitionName("t", 0): ((0, 10),)})


def test_there_is_one_writer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writing(), pytest.raises(PipelineError, match="another run is writing to it"), Store(tmp_path).writing():
        pass


def test_a_reader_of_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nothing was loaded there"):
        Store(tmp_path / "none").reading()


def test_manifests_are_what_they_were() -> None:
    made = manifest(1, A, B)
    assert folded([Manifest.from_json(made.to_json(), "m")]) == folded([made])


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', '{"format": 1}', "[]"])
def test_what_is_no_manifest_is_named(text: str) -> None:
    with pytest.raises(PipelineError, match=r"seven\.json"):
        Manifest.from_json(text, "seven.json")


def test_a_missing_manifest_is_found_out() -> None:
    with pytest.raises(PipelineError, match="manifest 2 is missing: the next is 3"):
        folded([manifest(1, A), manifest(3, B)])


def test_a_run_continues_after_what_is_covered() -> None:
    state = applied(applied(StoreState(), manifest(1, A)), manifest(2, B))
    assert state.covered == {PartitionName("t", 0): ((0, 20),)}
    assert state.loaded()["t"].next_offsets == {0: 20}


def test_spans_unite_where_they_touch() -> None:
    assert united([(5, 10), (0, 3), (3, 4), (8, 12)]) == ((0, 4), (5, 12))


def test_files_within_a_new_range_go_and_those_partly_within_are_written_again() -> None:
    touched = overlap([A, B, file("c", 20, 29), file("d", 30, 39)], [Range("t", 0, 5, 25)])
    assert [one.path for one in touched.within] == [B.path]
    assert [(one.first, one.last) for one in touched.partly] == [(0, 9), (20, 29)]


@pytest.mark.parametrize(
    ("covered", "missing"),
    [
        ((), [(500, 1_000)]),
        (((0, 500), (1_000, 1_500)), [(500, 1_000)]),  # another run has loaded a later range
        (((0, 600), (700, 800)), [(600, 700), (800, 1_000)]),
        (((0, 1_000),), []),
        (((400, 2_000),), []),
    ],
)
def test_what_is_missing_of_a_range_may_lie_between_loaded_ranges(
    covered: tuple[tuple[int, int], ...], missing: list[tuple[int, int]]
) -> None:
    state = StoreState(covered={PartitionName("t", 0): covered})
    assert state.missing([Range("t", 0, 500, 1_000)]) == [Range("t", 0, start, end) for start, end in missing]
