"""Tests which records a compacted log keeps, by Kafka's rules."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import Compression
from protocol.records.message_set import encode_message_set
from protocol.records.record import Record
from storage.log import Log
from storage.names import LOG, segment_file
from storage.segment.offsets_for_time import searched
from tests.storage.cleaning import compacted, latest, pairs, put, run_cleaner
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    base_offsets,
    batch,
    end_transaction,
    error_of,
    headers,
    open_log,
    read_all,
    values,
)

DAY_MS = 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0", compacted())


def seal(log: Log) -> None:
    """Rolls the log, so that everything written so far can be cleaned."""
    log.roll(NOW_MS)


def file_of(log: Log, base_offset: int = 0) -> bytes:
    return Path(log.directory, segment_file(base_offset, LOG)).read_bytes()


def horizons(log: Log) -> list[int | None]:
    return [header.delete_horizon_ms for header in headers(log)]


def test_the_latest_record_of_each_key_stays_at_its_offset(log: Log) -> None:
    for n in range(20):
        put(log, (f"k{n % 3}", str(n)))
    seal(log)
    run_cleaner(log)
    assert pairs(log) == [(17, "k2", "17"), (18, "k0", "18"), (19, "k1", "19")]
    assert (log.log_start_offset, log.log_end_offset, log.cleaned_to) == (0, 20, 20)


def test_records_go_from_within_a_batch_and_the_batch_keeps_its_place(log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"), ("c", "1"))
    put(log, ("b", "2"))
    seal(log)
    run_cleaner(log)
    assert pairs(log) == [(0, "a", "1"), (2, "c", "1"), (3, "b", "2")]
    first = headers(log)[0]
    assert (first.base_offset, first.last_offset_delta, first.records_count) == (0, 2, 2)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_of_which_nothing_goes_stays_byte_for_byte(log: Log, codec: Compression) -> None:
    put(log, ("a", "1"), ("b", "1"), compression=codec)
    put(log, ("c", "1"), compression=codec)
    seal(log)
    before = file_of(log)
    run_cleaner(log)
    assert file_of(log) == before


@pytest.mark.parametrize("codec", list(Compression))
def test_a_compressed_batch_is_compressed_again_by_its_codec(log: Log, codec: Compression) -> None:
    put(log, ("a", "1" * 100), ("b", "1"), compression=codec)
    put(log, ("a", "2"), compression=codec)
    seal(log)
    run_cleaner(log)
    assert pairs(log) == [(1, "b", "1"), (2, "a", "2")]
    assert [header.compression for header in headers(log)] == [codec, codec]


def test_a_compressed_record_beyond_the_limit_ends_the_cleaning(log: Log) -> None:
    put(log, ("a", "v" * 2000), compression=Compression.LZ4)
    put(log, ("a", "w" * 2000), compression=Compression.LZ4)
    seal(log)
    log.config = compacted(max_decompressed_message_bytes=1000)
    with error_of(ErrorCode.INVALID_RECORD):
        run_cleaner(log)
    assert len(pairs(log)) >= 2, "no record is lost"
    log.config = compacted()
    run_cleaner(log)
    assert pairs(log)[0] == (1, "a", "w" * 2000)


def test_the_active_segment_is_left_alone(log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    assert run_cleaner(log) is None
    seal(log)
    put(log, ("a", "3"))
    run_cleaner(log)
    assert pairs(log) == [(1, "a", "2"), (2, "a", "3")]


def test_small_segments_become_one(log: Log) -> None:
    for n in range(30):
        put(log, (f"k{n % 2}", str(n) * 10))
    assert len(log.segments) > 5
    active = log.segments.active.base_offset
    run_cleaner(log)
    assert base_offsets(log)[0] == 0
    assert base_offsets(log)[-1] == active
    assert len(log.segments) < 8
    run_cleaner(log, NOW_MS)  # nothing new: nothing to clean
    put(log, ("k0", "x" * 300))
    put(log, ("k0", "y" * 300))
    run_cleaner(log)
    assert len(log.segments) <= 4


def test_a_tombstone_goes_when_its_time_is_up_and_no_earlier(log: Log) -> None:
    log.config = compacted(delete_retention_ms=DAY_MS)
    put(log, ("a", "1"))
    put(log, ("a", None))
    put(log, ("b", "1"))
    seal(log)
    run_cleaner(log, NOW_MS)
    assert pairs(log) == [(1, "a", None), (2, "b", "1")]
    assert horizons(log) == [NOW_MS + DAY_MS, None]
    assert [record.timestamp for record in read_all(log)] == [NOW_MS, NOW_MS]
    clean_again(log, NOW_MS + DAY_MS - 1)
    assert ("a", None) in latest_pairs(log)
    assert horizons(log)[0] == NOW_MS + DAY_MS
    clean_again(log, NOW_MS + DAY_MS)
    assert ("a", None) not in latest_pairs(log)


def clean_again(log: Log, now_ms: int) -> None:
    put(log, ("other", str(now_ms)))
    log.roll(now_ms)
    run_cleaner(log, now_ms)


def latest_pairs(log: Log) -> list[tuple[str, str | None]]:
    return [(key, value) for _, key, value in pairs(log)]


def test_a_tombstone_in_the_dirty_part_removes_the_value_at_once(log: Log) -> None:
    put(log, ("a", "1"), ("b", "1"))
    seal(log)
    run_cleaner(log)
    put(log, ("a", None))
    seal(log)
    run_cleaner(log)
    assert latest(log) == {"b": "1"}
    assert len(pairs(log)) == 2


def test_a_producers_last_batch_stays_as_a_header_for_its_sequence_number(log: Log) -> None:
    put(log, ("a", "1"), pid=PID, sequence=0)
    put(log, ("a", "2"), ("a", "3"), pid=PID, sequence=1)
    put(log, ("a", "4"))
    seal(log)
    run_cleaner(log)
    remaining = headers(log)
    assert [(one.base_offset, one.records_count) for one in remaining] == [(1, 0), (3, 1)]
    assert (
        remaining[0].producer_id,
        remaining[0].base_sequence,
        remaining[0].last_sequence,
        remaining[0].last_offset,
    ) == (PID, 1, 2, 2)
    again = reopened(log)
    assert again.producer_state.producers[PID].last_sequence == 2
    assert put(again, ("a", "5"), pid=PID, sequence=3) == 4


def reopened(log: Log) -> Log:
    """Opens the log again as after a crash: everything is scanned, and the producers are rebuilt from the records."""
    for snapshot in Path(log.directory).glob("*.snapshot"):
        snapshot.unlink()
    return open_log(Path(log.directory), log.config, clean=False)


def test_the_last_batch_before_the_uncleanable_part_stays_as_a_header(log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", None))
    seal(log)
    log.config = compacted(delete_retention_ms=0)
    run_cleaner(log)
    clean_again(log, NOW_MS + 1)
    clean_again(log, NOW_MS + 2)
    assert [record.offset for record in read_all(log)] == [3]
    assert log.log_end_offset == 4


def test_nothing_past_the_first_unstable_offset_is_cleaned(log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    seal(log)
    put(log, ("a", "3"), pid=PID, transactional=True)
    seal(log)
    put(log, ("a", "4"))
    put(log, ("a", "5"))
    seal(log)
    run_cleaner(log)
    assert [offset for offset, *_ in pairs(log)] == [1, 2, 3, 4]
    assert log.cleaned_to == 2
    end_transaction(log, commit=True)
    seal(log)
    run_cleaner(log)
    assert values(data_records(log)) == ["5"]


def data_records(log: Log) -> list[Record]:
    return [record for record in read_all(log) if record.key is not None and len(record.key) < 4]


def test_records_of_an_aborted_transaction_go_and_do_not_count_as_latest(log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", "2"), pid=PID, transactional=True)
    end_transaction(log, commit=False)
    put(log, ("b", "1"))
    seal(log)
    run_cleaner(log)
    assert [(one.base_offset, one.is_control) for one in headers(log)] == [
        (0, False),
        (1, False),
        (2, True),
        (3, False),
    ]
    assert values(data_records(log)) == ["1", "1"]
    assert log.aborted_transactions(0, 10)[0].first_offset == 1


def test_a_marker_goes_once_its_records_are_gone_and_its_time_is_up(log: Log) -> None:
    log.config = compacted(delete_retention_ms=DAY_MS)
    put(log, ("a", "1"), pid=PID, transactional=True)
    put(log, ("b", "1"), pid=PID, sequence=1, transactional=True)
    end_transaction(log, commit=False)
    put(log, ("c", "1"), pid=PID, sequence=2, transactional=True)
    end_transaction(log, commit=True)
    put(log, ("c", "2"), pid=PID, sequence=3)  # else an empty batch would stay for the producer, and keep the marker
    seal(log)
    run_cleaner(log, NOW_MS)
    assert control_offsets(log) == [2, 4]  # the records of both were there
    assert [one.first_offset for one in log.aborted_transactions(0, 10)] == [0]
    clean_again(log, NOW_MS + 1)
    assert control_offsets(log) == [2, 4]  # the first time that they are alone: now their time begins
    assert horizons(log)[0] == NOW_MS + 1 + DAY_MS
    assert log.aborted_transactions(0, 10) == []
    clean_again(log, NOW_MS + DAY_MS)
    assert control_offsets(log) == [2, 4]
    clean_again(log, NOW_MS + DAY_MS + 1)
    assert control_offsets(log) == []


def control_offsets(log: Log) -> list[int]:
    return [header.base_offset for header in headers(log) if header.is_control and header.records_count]


def test_a_marker_that_is_all_a_producer_has_left_stays(log: Log) -> None:
    log.config = compacted(delete_retention_ms=0)
    put(log, ("a", "1"), pid=PID, transactional=True)
    end_transaction(log, commit=True, epoch=1)  # a new epoch, of which there is no data
    put(log, ("a", "2"))
    seal(log)
    for n in range(4):
        clean_again(log, NOW_MS + n)
    assert [(one.producer_epoch, one.records_count) for one in headers(log) if one.is_control] == [(1, 0)]


def test_a_full_map_cleans_a_part_and_the_next_round_goes_on(log: Log) -> None:
    for n in range(120):
        put(log, (f"key-{n}", "old"))
    for n in range(120):
        put(log, (f"key-{n}", "new"))
    seal(log)
    rounds = 0
    while run_cleaner(log, map_bytes=24 * 64) is not None:
        rounds += 1
    assert rounds > 3
    assert latest(log) == {f"key-{n}": "new" for n in range(120)}
    assert len(pairs(log)) == 120


def test_what_is_younger_than_min_compaction_lag_ms_waits(log: Log) -> None:
    log.config = compacted(min_compaction_lag_ms=1000)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    seal(log)
    put(log, ("a", "3"), timestamp=NOW_MS + 500)
    seal(log)
    assert run_cleaner(log, NOW_MS + 999) is None
    run_cleaner(log, NOW_MS + 1400)
    assert pairs(log) == [(1, "a", "2"), (2, "a", "3")]


def test_the_dirty_ratio_decides(log: Log) -> None:
    log.config = compacted(min_cleanable_dirty_ratio=0.5)
    for n in range(10):
        put(log, (f"k{n}", "x" * 50))
    seal(log)
    assert run_cleaner(log) is not None
    put(log, ("k0", "y" * 50))
    seal(log)
    assert run_cleaner(log) is None


def test_max_compaction_lag_ms_overrides_the_ratio(log: Log) -> None:
    log.config = compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    seal(log)
    assert run_cleaner(log, NOW_MS + 1000) is None
    assert run_cleaner(log, NOW_MS + 1001) is not None


def test_a_record_without_a_key_is_dropped(log: Log) -> None:
    log.config = compacted(cleanup_policy=("delete",))
    put(log, ("a", "1"))
    append(log, batch("no key", key=None))
    put(log, ("b", "1"))
    log.config = compacted()
    seal(log)
    cleaned = run_cleaner(log)
    assert cleaned is not None
    assert cleaned.invalid_records == 1
    assert latest(log) == {"a": "1", "b": "1"}


def test_the_segment_that_is_written_is_as_old_as_the_newest_that_it_stands_for(log: Log) -> None:
    for n in range(4):
        put(log, ("a", str(n)))
    seal(log)
    log.segments.first._disk.set_modified(log.segments.first.path, NOW_MS - 5 * DAY_MS)
    run_cleaner(log)
    assert log.segments.first.modified_ms() == NOW_MS - 5 * DAY_MS


def test_a_damaged_batch_stops_the_cleaning_and_changes_nothing(log: Log) -> None:
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    seal(log)
    path = Path(log.directory, segment_file(0, LOG))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    log.flush(NOW_MS)
    names = sorted(path.name for path in Path(log.directory).iterdir())
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        run_cleaner(log)
    assert path.read_bytes() == content
    assert sorted(path.name for path in Path(log.directory).iterdir()) == names


def test_lookups_by_time_and_offset_work_after_cleaning(log: Log) -> None:
    for n in range(40):
        put(log, (f"k{n % 7}", "x" * 20), timestamp=NOW_MS + n)
    seal(log)
    run_cleaner(log)
    remaining = read_all(log)
    assert len(remaining) == 7
    for n in range(41):
        expected = next((record.offset for record in remaining if record.timestamp >= NOW_MS + n), None)
        match = searched(partial(log.offset_for_timestamp, NOW_MS + n))
        assert (None if match is None else match.offset) == expected
    for record in remaining:
        assert read_all(log, record.offset)[0].offset == record.offset


def test_a_segment_of_old_messages_is_compacted_in_its_format(log: Log, tmp_path: Path) -> None:
    log.close()
    folder = tmp_path / "old-0"
    folder.mkdir()
    wrapped = [Record(n, NOW_MS, b"ab"[n % 2 : n % 2 + 1], str(n).encode()) for n in range(4)]
    plain = [Record(4, NOW_MS, b"a", b"4"), Record(5, NOW_MS, b"c", None)]
    content = encode_message_set(wrapped, 1, compression=Compression.GZIP) + encode_message_set(plain, 1)
    (folder / segment_file(0, LOG)).write_bytes(content)
    old = open_log(folder, compacted(delete_retention_ms=0), clean=False)
    old.update_high_watermark(old.log_end_offset)
    old.roll(NOW_MS)
    run_cleaner(old)
    assert [(one.magic, one.base_offset) for one in headers(old)] == [(1, 3), (1, 4), (1, 5)]
    put(old, ("d", "6"))
    seal(old)
    run_cleaner(old)  # the tombstone is in the clean part, and its time is up
    assert [one.base_offset for one in headers(old)] == [3, 4, 6]
