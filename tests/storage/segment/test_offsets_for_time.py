"""Tests look-ups of offsets by timestamp."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from storage.log import Log
from storage.segment.offsets_for_time import Unseen, searched
from tests.storage.writing import NOW_MS, append, batch, config, error_of, open_log, read_all, write


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0", config(segment_bytes=600))


def times(log: Log, *timestamps: int, compression: Compression = Compression.NONE) -> None:
    data = build([Record(0, NOW_MS + t, b"k", b"v") for t in timestamps], compression=compression)
    append(log, memoryview(data), leader_epoch=4)


def lookup(log: Log, t: int) -> tuple[int, int] | None:
    place = searched(partial(log.offset_for_timestamp, NOW_MS + t))
    return None if place is None else (place.timestamp - NOW_MS, place.offset)


def test_the_first_record_at_or_after_a_time_is_found_within_its_batch(log: Log) -> None:
    times(log, 10, 20, 30)
    times(log, 40, 50)
    assert [lookup(log, t) for t in (0, 10, 11, 30, 31, 50, 51)] == [
        (10, 0),
        (10, 0),
        (20, 1),
        (30, 2),
        (40, 3),
        (50, 4),
        None,
    ]


def test_it_is_found_in_a_compressed_batch(log: Log) -> None:
    times(log, 10, 20, 30, compression=Compression.LZ4)
    assert lookup(log, 15) == (20, 1)


def test_a_compressed_record_beyond_the_limit_ends_the_search(log: Log) -> None:
    records = [Record(0, NOW_MS + 10, b"k", bytes(2000))]
    append(log, memoryview(build(records, compression=Compression.LZ4)))
    log.config = config(max_decompressed_message_bytes=1000)
    with error_of(ErrorCode.INVALID_RECORD):
        lookup(log, 0)
    with error_of(ErrorCode.INVALID_RECORD):
        searched(log.max_timestamp)
    log.config = config()
    assert lookup(log, 0) == (10, 0)


def test_its_leader_epoch_comes_with_it(log: Log) -> None:
    times(log, 10)
    place = searched(partial(log.offset_for_timestamp, NOW_MS))
    assert place is not None
    assert place.leader_epoch == 4


def test_times_out_of_order_are_found_by_offset(log: Log) -> None:
    times(log, 50, 10, 40)
    times(log, 20, 60)
    assert [lookup(log, t) for t in (10, 45, 55)] == [(50, 0), (50, 0), (60, 4)]


def test_deleted_records_are_not_found(log: Log) -> None:
    times(log, 10, 20, 30)
    times(log, 40)
    log.advance_log_start(2)
    assert lookup(log, 0) == (30, 2)


def test_the_largest_timestamp_is_found_with_the_first_record_that_has_it(log: Log) -> None:
    times(log, 10, 70, 70)
    times(log, 30, 40)
    place = searched(log.max_timestamp)
    assert place is not None
    assert (place.timestamp - NOW_MS, place.offset, place.leader_epoch) == (70, 1, 4)


def test_the_largest_timestamp_of_what_is_left_is_found_after_its_record_was_deleted(log: Log) -> None:
    times(log, 90, 20)
    times(log, 60)
    times(log, 70, 30, 70)
    log.advance_log_start(1)
    place = searched(log.max_timestamp)
    assert place is not None
    assert (place.timestamp - NOW_MS, place.offset, place.leader_epoch) == (70, 3, 4)
    log.advance_log_start(6)
    assert searched(log.max_timestamp) is None


def test_a_log_without_timestamps_has_no_largest(log: Log) -> None:
    assert searched(log.max_timestamp) is None
    write(log, "a", timestamp=-1)
    assert searched(log.max_timestamp) is None


def test_lookups_agree_with_a_search_of_all_records_over_many_segments(log: Log) -> None:
    chance = random.Random(7)
    for _ in range(120):
        times(log, *[chance.randrange(1000) for _ in range(chance.randrange(1, 4))])
    assert len(log.segments) > 5
    everything = read_all(log)
    for reopened in (log, reopen(log)):
        for t in range(0, 1010, 10):
            first = next(((r.timestamp - NOW_MS, r.offset) for r in everything if r.timestamp >= NOW_MS + t), None)
            assert lookup(reopened, t) == first


def reopen(log: Log) -> Log:
    log.flush(NOW_MS)
    log.close()
    return open_log(Path(log.directory), log.config)


def test_an_empty_log_finds_nothing(log: Log) -> None:
    assert lookup(log, 0) is None


def test_old_messages_are_found_by_their_own_times(log: Log) -> None:
    from protocol.records.message_set import encode_message_set

    data = encode_message_set([Record(0, NOW_MS + 10), Record(1, NOW_MS + 20)], 1)
    append(log, memoryview(bytearray(data)))
    append(log, batch("b", timestamp=NOW_MS + 30))
    assert [lookup(log, t) for t in (5, 15, 25)] == [(10, 0), (20, 1), (30, 2)]


def test_records_are_looked_at_elsewhere(log: Log) -> None:
    times(log, 10, 20, 30, compression=Compression.GZIP)
    with pytest.raises(Unseen) as caught:
        log.offset_for_timestamp(NOW_MS + 15, {})
    seen = caught.value.look()
    assert log.offset_for_timestamp(NOW_MS + 15, {caught.value.key: seen}) == seen


def test_what_is_deleted_meanwhile_is_not_found(log: Log) -> None:
    times(log, 10, 20, 30)
    with pytest.raises(Unseen) as caught:
        log.offset_for_timestamp(NOW_MS, {})
    looked = {caught.value.key: caught.value.look()}
    log.advance_log_start(2)
    with pytest.raises(Unseen):
        log.offset_for_timestamp(NOW_MS, looked)
