"""Tests when a log begins a new segment."""

from __future__ import annotations

from pathlib import Path

from protocol.records.building import build
from storage.log import Log
from storage.producers.entry import Origin
from storage.segment.index import MAX_RELATIVE_OFFSET
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    config,
    headers,
    open_log,
    read_all,
    records,
    values,
    write,
)

HOUR_MS = 3_600_000


def open_with(tmp_path: Path, **topic_config: object) -> Log:
    return open_log(tmp_path / "orders-0", config(**topic_config))


def test_a_segment_rolls_when_the_next_batch_does_not_fit(tmp_path: Path) -> None:
    size = len(batch("a"))
    log = open_with(tmp_path, segment_bytes=2 * size)
    for _ in range(5):
        write(log, "a")
    assert base_offsets(log) == [0, 2, 4]
    assert [segment.size_bytes for segment in log.segments] == [2 * size, 2 * size, size]


def test_a_segment_s_files_are_named_for_its_first_offset(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_bytes=100)
    write(log, "a")
    write(log, "b")
    names = {path.name for path in (tmp_path / "orders-0").iterdir()}
    assert {"00000000000000000000.log", "00000000000000000001.log", "00000000000000000001.snapshot"} <= names


def test_time_rolls_by_the_batches_timestamps_not_by_the_clock(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_ms=HOUR_MS)
    write(log, "a", timestamp=NOW_MS, now_ms=NOW_MS)
    write(log, "b", timestamp=NOW_MS + HOUR_MS, now_ms=NOW_MS + 10 * HOUR_MS)
    assert base_offsets(log) == [0]
    write(log, "c", timestamp=NOW_MS + HOUR_MS + 1, now_ms=NOW_MS + 10 * HOUR_MS)
    assert base_offsets(log) == [0, 2]


def test_time_rolls_by_the_clock_where_there_are_no_timestamps(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_ms=HOUR_MS)
    write(log, "a", timestamp=-1)
    write(log, "b", timestamp=-1, now_ms=NOW_MS + HOUR_MS)
    assert base_offsets(log) == [0]
    write(log, "c", timestamp=-1, now_ms=NOW_MS + HOUR_MS + 1)
    assert base_offsets(log) == [0, 2]


def test_an_empty_segment_does_not_roll_for_its_age(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_ms=HOUR_MS)
    write(log, "a", timestamp=-1, now_ms=NOW_MS + 10 * HOUR_MS)
    assert base_offsets(log) == [0]


def test_age_is_counted_from_the_first_batch_after_a_restart_too(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_ms=HOUR_MS)
    write(log, "a", timestamp=NOW_MS)
    log.close()
    log = open_with(tmp_path, segment_ms=HOUR_MS)
    write(log, "b", timestamp=NOW_MS + HOUR_MS + 1, now_ms=NOW_MS + 1)
    assert base_offsets(log) == [0, 1]


def test_jitter_takes_off_less_than_its_limit_and_differs_between_partitions(tmp_path: Path) -> None:
    jittered = config(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS)
    jitters = {open_log(tmp_path / f"orders-{n}", jittered).segments.active.roll_jitter_ms for n in range(20)}
    assert all(0 <= jitter < HOUR_MS for jitter in jitters)
    assert len(jitters) > 10


def test_a_compacted_log_rolls_within_its_compaction_lag(tmp_path: Path) -> None:
    log = open_with(tmp_path, cleanup_policy=("compact",), max_compaction_lag_ms=HOUR_MS)
    write(log, "a", timestamp=NOW_MS)
    write(log, "b", timestamp=NOW_MS + HOUR_MS + 1, now_ms=NOW_MS + HOUR_MS)
    assert base_offsets(log) == [0, 1]


def test_a_full_index_rolls(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_index_bytes=5 * 8, index_interval_bytes=0)
    for n in range(20):
        write(log, "a", timestamp=NOW_MS + n)
    assert len(log.segments) > 3
    assert all(segment.index.entries <= 5 for segment in log.segments)
    assert values(read_all(log)) == ["a"] * 20


def test_offsets_that_do_not_fit_the_index_roll(tmp_path: Path) -> None:
    log = open_with(tmp_path)
    write(log, "a")
    for base_offset in (MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET + 1):
        append(log, memoryview(build(records("b"), base_offset=base_offset)), origin=Origin.REPLICATION)
    assert base_offsets(log) == [0, MAX_RELATIVE_OFFSET + 1]


def test_a_roll_leaves_a_snapshot_of_the_producers_at_the_new_segment(tmp_path: Path) -> None:
    log = open_with(tmp_path)
    append(log, batch("a", pid=PID))
    log.roll(NOW_MS)
    assert log.producer_state.latest_snapshot_offset == 1


def test_rolling_an_empty_segment_changes_nothing(tmp_path: Path) -> None:
    log = open_with(tmp_path)
    active = log.segments.active
    assert log.roll(NOW_MS) is active
    write(log, "a")
    assert base_offsets(log) == [0]


def test_a_rolled_segment_s_time_index_ends_with_its_largest_timestamp(tmp_path: Path) -> None:
    log = open_with(tmp_path)
    write(log, "a", timestamp=NOW_MS + 5)
    write(log, "b", timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert tuple(log.segments.first.time_index.last_entry) == (NOW_MS + 5, 0)


def test_preallocated_space_is_given_back_when_a_segment_is_done(tmp_path: Path) -> None:
    log = open_with(tmp_path, preallocate=True, segment_bytes=10_000)
    write(log, "a")
    file = tmp_path / "orders-0" / "00000000000000000000.log"
    assert file.stat().st_size == 10_000
    log.roll(NOW_MS)
    assert file.stat().st_size == headers(log)[0].size_bytes
