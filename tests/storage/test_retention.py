"""Tests which segments retention deletes, and the effect on readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from storage.log import Log
from storage.retention import Reason
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    config,
    error_of,
    open_log,
    read_all,
    write,
)

HOUR_MS = 3_600_000
SIZE = len(batch("x" * 100))


def hourly(tmp_path: Path, count: int = 6, **topic_config: object) -> Log:
    """Returns a segment with one batch for each hour until now."""
    log = open_log(tmp_path / "orders-0", config(retention_ms=-1, **topic_config))
    for n in range(count):
        if n:
            log.roll(NOW_MS)
        write(log, "x" * 100, timestamp=NOW_MS - (count - 1 - n) * HOUR_MS)
    return log


def retain(log: Log, **topic_config: object) -> list[Reason]:
    log.config = config(retention_ms=-1) if not topic_config else config(**{"retention_ms": -1, **topic_config})
    return [entry.reason for entry in log.apply_retention(NOW_MS)]


def test_without_limits_everything_stays(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    assert retain(log) == []
    assert len(log.segments) == 6


def test_segments_whose_newest_record_is_too_old_go(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    assert retain(log, retention_ms=2 * HOUR_MS) == [Reason.TIME] * 3
    assert (log.log_start_offset, base_offsets(log)) == (3, [3, 4, 5])


def test_even_the_active_segment_goes_for_its_age(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    log.config = config(retention_ms=0)
    log.apply_retention(NOW_MS + 1)
    assert (log.log_start_offset, log.log_end_offset, base_offsets(log)) == (6, 6, [6])
    assert write(log, "a").base_offset == 6


def test_an_old_segment_behind_a_younger_one_stays(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(retention_ms=-1))
    write(log, "young", timestamp=NOW_MS)
    log.roll(NOW_MS)
    write(log, "old", timestamp=NOW_MS - 10 * HOUR_MS)
    log.roll(NOW_MS)
    assert retain(log, retention_ms=HOUR_MS) == []


def test_segments_go_as_long_as_the_log_stays_at_least_as_large_as_its_limit(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    assert retain(log, retention_bytes=2 * SIZE + 1) == [Reason.SIZE] * 3
    assert log.size_bytes == 3 * SIZE
    assert retain(log, retention_bytes=2 * SIZE) == [Reason.SIZE]


def test_segments_before_the_log_s_start_go_even_where_nothing_else_does(tmp_path: Path) -> None:
    log = hourly(tmp_path, cleanup_policy=("compact",))
    log.advance_log_start(2)
    assert retain(log, cleanup_policy=("compact",), retention_ms=0, retention_bytes=0) == [Reason.LOG_START] * 2
    assert base_offsets(log) == [2, 3, 4, 5]


def test_a_compacted_log_keeps_what_time_and_size_would_take(tmp_path: Path) -> None:
    assert retain(hourly(tmp_path), cleanup_policy=("compact",), retention_ms=0, retention_bytes=0) == []


def test_nothing_beyond_the_high_watermark_goes(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    log.high_watermark = 2
    assert retain(log, retention_ms=0) == [Reason.TIME] * 2


def test_each_segment_goes_for_the_first_reason_that_it_has(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    log.advance_log_start(1)
    deleted = retain(log, retention_bytes=4 * SIZE, retention_ms=2 * HOUR_MS)
    assert deleted == [Reason.LOG_START, Reason.SIZE, Reason.TIME]


def test_where_records_have_no_time_the_file_s_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", config(retention_ms=1000))
    append(log, batch("a", timestamp=-1))
    log.roll(NOW_MS)
    log.segments.first._disk.set_modified(log.segments.first.path, NOW_MS)
    assert log.apply_retention(NOW_MS + 1000) == []
    assert len(log.apply_retention(NOW_MS + 1001)) == 1


def test_files_are_set_aside_and_removed_after_their_delay(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    retain(log, retention_bytes=0)
    assert len(list((tmp_path / "orders-0").glob("*.log.deleted"))) == 6
    log.segments.delete_expired(NOW_MS + 60_000)
    assert list((tmp_path / "orders-0").glob("*.deleted")) == []


def test_a_reader_of_a_deleted_segment_reads_on(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    (view,) = log.read(0, 10_000).parts
    before = bytes(view)
    retain(log, retention_bytes=0)
    log.segments.delete_expired(NOW_MS + 60_000)
    assert bytes(view) == before


def test_deleted_offsets_are_out_of_range(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    retain(log, retention_ms=2 * HOUR_MS)
    with error_of(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(2, 1000)
    assert [record.offset for record in read_all(log)] == [3, 4, 5]


def test_records_can_be_deleted_up_to_the_high_watermark(tmp_path: Path) -> None:
    log = hourly(tmp_path)
    with error_of(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.advance_log_start(7)
    assert log.advance_log_start(6)
    assert not log.advance_log_start(3)
    assert read_all(log) == []


def test_a_producer_whose_records_are_gone_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, batch("a", pid=PID, sequence=0))
    log.roll(NOW_MS)
    log.config = config(retention_bytes=0)
    log.apply_retention(NOW_MS)
    append(log, batch("b", pid=PID, sequence=1))
    with error_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(log, batch("d", pid=PID, sequence=3))


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_deleted_stays_deleted_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = hourly(tmp_path)
    retain(log, retention_ms=2 * HOUR_MS)
    log.flush(NOW_MS)
    log.close()
    reopened = open_log(tmp_path / "orders-0", clean=clean)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (3, 6)


def test_a_thread_may_read_beforehand_what_retention_asks_of_segments(tmp_path: Path) -> None:
    first = open_log(tmp_path / "orders-0", config(segment_bytes=120, retention_ms=1000))
    for n in range(4):
        write(first, "x" * 40, timestamp=NOW_MS + n)
    first.flush(NOW_MS)
    first.close()
    log = open_log(tmp_path / "orders-0", first.config)
    log.update_high_watermark(log.log_end_offset)
    log.look_at_old_segments(NOW_MS + 5000)
    assert all(segment.knows_max_timestamp for segment in list(log.segments)[:-1])
    assert len(log.apply_retention(NOW_MS + 5000)) >= 3
