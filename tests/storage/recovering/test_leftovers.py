"""Tests files that a crash left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.log import Log
from storage.segment.segment import Segment
from tests.storage.writing import (
    DISK,
    NOW_MS,
    append,
    base_offsets,
    batch,
    config,
    headers,
    open_log,
    read_all,
    values,
    write,
)

SMALL = config(segment_bytes=300)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Returns a log of four segments that was closed cleanly."""
    folder = tmp_path / "orders-0"
    log = open_log(folder, SMALL)
    for n in range(12):
        write(log, f"{n:020d}")
    log.flush(NOW_MS)
    log.close()
    assert len(base_offsets(log)) == 4
    return folder


def names(directory: Path, pattern: str) -> set[str]:
    return {path.name for path in directory.glob(pattern)}


def reopen(directory: Path) -> Log:
    return open_log(directory, SMALL)


def test_files_set_aside_for_deletion_go(directory: Path) -> None:
    for name in (f"{0:020d}.log.deleted", f"{0:020d}.index.deleted", f"{0:020d}.snapshot.deleted"):
        (directory / name).touch()
    reopen(directory)
    assert names(directory, "*.deleted") == set()


def test_a_deleted_snapshot_of_the_metadata_log_is_its_owner_s(directory: Path) -> None:
    name = f"{5:020d}-{1:010d}.checkpoint.deleted"
    (directory / name).touch()
    reopen(directory)
    assert names(directory, "*.deleted") == {name}


def test_an_unfinished_cleaning_is_forgotten(directory: Path) -> None:
    (directory / f"{0:020d}.log.cleaned").write_bytes(b"half")
    before = base_offsets(reopen(directory))
    assert names(directory, "*.cleaned") == set()
    assert base_offsets(reopen(directory)) == before


def cleaned(directory: Path) -> None:
    """Cleans the first three segments into one that keeps every other record, up to the rename to .swap."""
    log = reopen(directory)
    swap = Segment.create(str(directory), 0, SMALL, disk=DISK, now_ms=NOW_MS, suffix=".swap")
    for header in headers(log):
        if header.base_offset < base_offsets(log)[3] and header.base_offset % 2 == 0:
            (part,) = log.read(header.base_offset, 1).parts
            swap.append([part], [header], header.size_bytes)
    swap.seal()
    swap.flush()
    log.close()


def test_a_finished_cleaning_takes_its_place(directory: Path) -> None:
    cleaned(directory)
    log = reopen(directory)
    assert base_offsets(log) == [0, 9]
    assert [record.offset for record in read_all(log)] == [0, 2, 4, 6, 8, 9, 10, 11]
    assert names(directory, "*.swap") == set()


def test_a_finished_cleaning_takes_its_place_when_its_sources_are_half_gone(directory: Path) -> None:
    cleaned(directory)
    (directory / f"{3:020d}.log").rename(directory / f"{3:020d}.log.deleted")
    (directory / f"{3:020d}.index").unlink()
    assert [record.offset for record in read_all(reopen(directory))] == [0, 2, 4, 6, 8, 9, 10, 11]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + bytes(100))


def cut_in_two(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 - 1])


def make_empty(file: Path) -> None:
    file.write_bytes(b"")


def move_last_batch(file: Path) -> None:
    content = file.read_bytes()
    at = content.rindex((8).to_bytes(8))
    file.write_bytes(content[:at] + (8 + (1 << 24)).to_bytes(8) + content[at + 8 :])


@pytest.mark.parametrize("damage", [flip, lengthen, cut_in_two, make_empty, move_last_batch])
@pytest.mark.parametrize("renamed", [0, 1, 3])
def test_a_damaged_cleaning_costs_no_record(directory: Path, damage: Callable[[Path], None], renamed: int) -> None:
    cleaned(directory)
    damage(directory / f"{0:020d}.log.swap")
    for base in (0, 3, 6)[:renamed]:
        (directory / f"{base:020d}.log").rename(directory / f"{base:020d}.log.deleted")
    log = reopen(directory)
    assert base_offsets(log) == [0, 3, 6, 9]
    assert values(read_all(log)) == [f"{n:020d}" for n in range(12)]
    assert names(directory, "*.swap") == names(directory, "*.deleted") == set()
    assert len(names(directory, "set-aside-*.log.kept")) == (damage is not make_empty)


def test_segments_of_an_earlier_cleaning_do_not_come_back_for_a_damaged_one(directory: Path) -> None:
    cleaned(directory)
    flip(directory / f"{0:020d}.log.swap")
    shutil.copy(directory / f"{3:020d}.log", directory / f"{4:020d}.log.deleted")
    assert base_offsets(reopen(directory)) == [0, 3, 6, 9]
    assert names(directory, "*.deleted") == set()


def test_a_replacement_beyond_an_unfinished_one_is_forgotten_with_it(directory: Path) -> None:
    cleaned(directory)
    (directory / f"{0:020d}.log.cleaned").touch()
    assert [record.offset for record in read_all(reopen(directory))] == list(range(12))


def test_a_crash_in_the_middle_of_truncation_leaves_the_log_as_it_was(directory: Path) -> None:
    (directory / f"{9:020d}.log.cleaned").write_bytes(b"copy")
    log = reopen(directory)
    assert values(read_all(log)) == [f"{n:020d}" for n in range(12)]
    append(log, batch("more"))
