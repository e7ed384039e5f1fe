"""Tests which batches may be appended, and how they are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import TimestampType, check_crc, read_header, seal, set_max_timestamp
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.message_set import encode_message_set
from protocol.records.record import Record
from storage.log import Log
from storage.producers.entry import Origin
from tests.storage.writing import (
    NOW_MS,
    PID,
    append,
    batch,
    config,
    end_transaction,
    error_of,
    headers,
    marker,
    open_log,
    read_all,
    records,
    values,
    write,
)

HOUR_MS = 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "orders-0")


def open_with(tmp_path: Path, **topic_config: object) -> Log:
    return open_log(tmp_path / "orders-0", config(**topic_config))


def nothing_was_written(log: Log) -> bool:
    return log.log_end_offset == 0 and log.size_bytes == 0


def test_batches_get_consecutive_offsets(log: Log) -> None:
    first, second = write(log, "a", "b"), write(log, "c")
    assert (first.base_offset, first.last_offset, second.base_offset) == (0, 1, 2)
    assert [(record.offset, record.value) for record in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_the_leader_epoch_is_stamped_and_remembered(log: Log) -> None:
    append(log, batch("a"), leader_epoch=3)
    append(log, batch("b"), leader_epoch=7)
    assert [header.partition_leader_epoch for header in headers(log)] == [3, 7]
    assert [(entry.epoch, entry.start_offset) for entry in log.epochs.entries] == [(3, 0), (7, 1)]


def test_the_records_bytes_are_written_as_they_came(log: Log) -> None:
    data = batch("a", "b", compression=Compression.ZSTD)
    sent = bytes(data)
    append(log, data)
    (part,) = log.read(0, 10_000).parts
    assert bytes(part[21:]) == sent[21:]
    assert check_crc(part, 0, read_header(part))


def test_an_append_answers_no_time_when_producers_set_them(log: Log) -> None:
    assert write(log, "a").log_append_time_ms == -1


def test_damaged_bytes_are_refused(log: Log) -> None:
    data = batch("a")
    data[-1] ^= 1
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        append(log, data)
    assert nothing_was_written(log)


@pytest.mark.parametrize("size", [1, 11, 16, 17, 60])
def test_a_batch_cut_within_its_header_is_no_batch(log: Log, size: int) -> None:
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        append(log, batch("a")[:size])
    assert nothing_was_written(log)


def test_a_batch_cut_within_its_records_is_left_out(log: Log) -> None:
    assert append(log, batch("a")[:-1]).base_offset == -1
    assert nothing_was_written(log)


def test_no_bytes_are_no_batch(log: Log) -> None:
    assert append(log, memoryview(bytearray())).base_offset == -1


def test_a_batch_above_the_size_limit_is_refused(tmp_path: Path) -> None:
    log = open_with(tmp_path, max_message_bytes=200)
    with error_of(ErrorCode.MESSAGE_TOO_LARGE):
        write(log, "x" * 200)
    write(log, "x" * 100)


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_with(tmp_path, segment_bytes=200)
    with error_of(ErrorCode.RECORD_LIST_TOO_LARGE):
        write(log, "x" * 200)


def test_a_client_s_batch_begins_at_offset_zero(log: Log) -> None:
    with error_of(ErrorCode.INVALID_RECORD):
        append(log, memoryview(build(records("a"), base_offset=5)))


def test_a_client_sends_one_batch_for_a_partition(log: Log) -> None:
    with error_of(ErrorCode.INVALID_RECORD):
        append(log, memoryview(bytearray(bytes(batch("a")) + bytes(batch("b")))))
    assert nothing_was_written(log)


def test_the_broker_itself_may_append_several_batches(log: Log) -> None:
    appended = append(log, memoryview(bytearray(bytes(batch("a", "b")) + bytes(batch("c")))), origin=Origin.COORDINATOR)
    assert (appended.base_offset, appended.last_offset) == (0, 2)
    assert values(read_all(log)) == ["a", "b", "c"]


def test_a_client_may_not_write_control_batches(log: Log) -> None:
    with error_of(ErrorCode.INVALID_RECORD):
        append(log, marker(commit=True))


def test_a_count_that_does_not_fit_the_offsets_is_refused(log: Log) -> None:
    data = batch("a", "b")
    data[57:61] = (1).to_bytes(4, "big")
    seal(data, 0, len(data) - 12)
    with error_of(ErrorCode.INVALID_RECORD):
        append(log, data)


# Time


def test_log_append_time_is_the_broker_s(tmp_path: Path) -> None:
    log = open_with(tmp_path, message_timestamp_type="LogAppendTime")
    appended = write(log, "a", "b", timestamp=5, now_ms=NOW_MS + 1)
    assert appended.log_append_time_ms == NOW_MS + 1
    assert [record.timestamp for record in read_all(log)] == [NOW_MS + 1, NOW_MS + 1]
    (part,) = log.read(0, 10_000).parts
    assert check_crc(part, 0, read_header(part))


def test_a_replica_keeps_its_leader_s_log_append_time(tmp_path: Path) -> None:
    log = open_with(tmp_path, message_timestamp_type="LogAppendTime")
    appended = append(log, batch("a", timestamp=5), now_ms=NOW_MS + 1, origin=Origin.REPLICATION)
    assert appended.log_append_time_ms == -1
    assert [record.timestamp for record in read_all(log)] == [5]


def test_a_producer_does_not_choose_log_append_time(tmp_path: Path) -> None:
    log = open_with(tmp_path, message_timestamp_type="LogAppendTime")
    data = batch("a", "b")
    set_max_timestamp(data, 0, TimestampType.LOG_APPEND_TIME, NOW_MS)
    with pytest.raises(InvalidRecords) as raised:
        append(log, data)
    assert raised.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in raised.value.record_errors] == [0, 1]


def test_the_mark_of_log_append_time_is_taken_off_where_times_are_the_producers(log: Log) -> None:
    data = batch("a")
    set_max_timestamp(data, 0, TimestampType.LOG_APPEND_TIME, NOW_MS)
    append(log, data)
    assert headers(log)[0].timestamp_type is TimestampType.CREATE_TIME


def test_a_record_too_far_in_the_future_is_named(log: Log) -> None:
    late = NOW_MS + HOUR_MS + 1
    data = build([Record(0, NOW_MS, b"k", b"a"), Record(0, late, b"k", b"b")])
    with pytest.raises(InvalidRecords) as raised:
        append(log, memoryview(data))
    assert raised.value.code is ErrorCode.INVALID_TIMESTAMP
    limits = f"[{NOW_MS - (2**63 - 1)}, {NOW_MS + HOUR_MS}]"
    assert raised.value.record_errors == [
        (1, f"Timestamp {late} of message with offset 1 is out of range. The timestamp should be within {limits}")
    ]


def test_a_record_too_old_is_named_wherever_it_is_in_the_batch(tmp_path: Path) -> None:
    log = open_with(tmp_path, message_timestamp_before_max_ms=HOUR_MS)
    data = build([Record(0, NOW_MS, b"k", b"a"), Record(0, NOW_MS - HOUR_MS - 1, b"k", b"b")])
    with pytest.raises(InvalidRecords) as raised:
        append(log, memoryview(data))
    assert [index for index, _ in raised.value.record_errors] == [1]


def test_timestamps_at_the_bounds_are_fine(tmp_path: Path) -> None:
    log = open_with(tmp_path, message_timestamp_before_max_ms=HOUR_MS)
    append(log, memoryview(build([Record(0, NOW_MS + HOUR_MS), Record(0, NOW_MS - HOUR_MS), Record(0, -1)])))


# Compaction and compression


def test_a_compacted_topic_refuses_records_without_a_key_and_names_them(tmp_path: Path) -> None:
    log = open_with(tmp_path, cleanup_policy=("compact",))
    data = build([Record(0, NOW_MS, b"k", b"a"), Record(0, NOW_MS, None, b"b"), Record(0, NOW_MS, None, b"c")])
    with pytest.raises(InvalidRecords) as raised:
        append(log, memoryview(data))
    assert raised.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in raised.value.record_errors] == [1, 2]
    assert nothing_was_written(log)


def test_an_empty_key_is_a_key(tmp_path: Path) -> None:
    append(open_with(tmp_path, cleanup_policy=("compact",)), batch("a", key=""))


@pytest.mark.parametrize(
    ("topic", "sent", "stored"),
    [
        ("producer", Compression.LZ4, Compression.LZ4),
        ("uncompressed", Compression.LZ4, Compression.NONE),
        ("zstd", Compression.NONE, Compression.ZSTD),
        ("gzip", Compression.SNAPPY, Compression.GZIP),
        ("gzip", Compression.GZIP, Compression.GZIP),
    ],
)
def test_the_topic_may_choose_the_compression(
    tmp_path: Path, topic: str, sent: Compression, stored: Compression
) -> None:
    log = open_with(tmp_path, compression_type=topic)
    append(log, batch("a", "b" * 500, compression=sent, pid=PID, sequence=7), leader_epoch=4)
    (header,) = headers(log)
    assert header.compression is stored
    assert (header.producer_id, header.base_sequence, header.partition_leader_epoch) == (PID, 7, 4)
    assert values(read_all(log)) == ["a", "b" * 500]


def test_log_append_time_and_another_compression_go_together(tmp_path: Path) -> None:
    log = open_with(tmp_path, compression_type="zstd", message_timestamp_type="LogAppendTime")
    write(log, "a", timestamp=5)
    (header,) = headers(log)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOW_MS)


def test_what_another_compression_makes_too_large_is_refused(tmp_path: Path) -> None:
    log = open_with(tmp_path, compression_type="uncompressed", max_message_bytes=1000)
    with error_of(ErrorCode.MESSAGE_TOO_LARGE):
        append(log, batch("x" * 2000, compression=Compression.GZIP))


# Old formats


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_messages_of_old_producers_become_one_batch(log: Log, magic: int, compression: Compression) -> None:
    write(log, "before")
    data = encode_message_set(records("a", "b", "c"), magic=magic, compression=compression)
    appended = append(log, memoryview(bytearray(data)))
    assert (appended.base_offset, appended.last_offset) == (1, 3)
    assert values(read_all(log)) == ["before", "a", "b", "c"]
    assert headers(log)[1].compression is compression


def test_an_old_producer_s_damaged_message_is_refused(log: Log) -> None:
    data = bytearray(encode_message_set(records("a"), magic=1))
    data[-1] ^= 1
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        append(log, memoryview(data))


def test_an_old_producer_s_message_may_not_be_too_large(tmp_path: Path) -> None:
    log = open_with(tmp_path, max_message_bytes=200)
    with error_of(ErrorCode.MESSAGE_TOO_LARGE):
        append(log, memoryview(bytearray(encode_message_set(records("x" * 300), magic=1))))


# Producers


def test_a_repeated_batch_is_answered_with_its_first_offset_and_not_written_again(log: Log) -> None:
    append(log, batch("a", "b", pid=PID, sequence=0))
    append(log, batch("c", pid=PID, sequence=2))
    again = append(log, batch("a", "b", pid=PID, sequence=0))
    assert (again.base_offset, again.last_offset, again.duplicate) == (0, 1, True)
    assert values(read_all(log)) == ["a", "b", "c"]


def test_a_gap_in_a_producer_s_sequence_is_refused(log: Log) -> None:
    append(log, batch("a", pid=PID, sequence=0))
    with error_of(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(log, batch("c", pid=PID, sequence=2))
    assert log.log_end_offset == 1


def test_an_older_epoch_is_fenced(log: Log) -> None:
    append(log, batch("a", pid=PID, epoch=1))
    with error_of(ErrorCode.INVALID_PRODUCER_EPOCH):
        append(log, batch("b", pid=PID, epoch=0))


def test_a_negative_sequence_is_refused(log: Log) -> None:
    with error_of(ErrorCode.INVALID_RECORD):
        append(log, batch("a", pid=PID, sequence=-1))


def test_an_open_transaction_holds_the_last_stable_offset_back(log: Log) -> None:
    write(log, "before")
    append(log, batch("a", pid=PID, transactional=True))
    write(log, "after")
    assert log.first_unstable_offset == 1
    end_transaction(log, commit=True)
    assert log.first_unstable_offset is None


def test_an_aborted_transaction_is_told_to_who_reads_its_records(log: Log) -> None:
    append(log, batch("a", "b", pid=PID, transactional=True))
    write(log, "c")
    end_transaction(log, commit=False)
    write(log, "d")
    (aborted,) = log.aborted_transactions(0, 5)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (PID, 0, 3)
    assert log.aborted_in(log.read(0, 10_000)) == [aborted]
    assert log.aborted_transactions(4, 5) == []


def test_aborted_transactions_are_found_in_later_segments(log: Log) -> None:
    append(log, batch("a", pid=PID, transactional=True))
    log.roll(NOW_MS)
    end_transaction(log, commit=False)
    assert [aborted.first_offset for aborted in log.aborted_in(log.read(0, 10_000))] == [0]


# Replication


def test_a_leader_s_batches_keep_their_offsets_and_epochs(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader-0")
    append(leader, batch("a", "b"), leader_epoch=2)
    append(leader, batch("c"), leader_epoch=3)
    (part,) = leader.read(0, 10_000).parts
    follower = open_log(tmp_path / "follower-0")
    appended = append(follower, part, leader_epoch=-1, origin=Origin.REPLICATION)
    assert (appended.base_offset, appended.last_offset) == (0, 2)
    assert headers(follower) == headers(leader)
    assert follower.epochs.entries == leader.epochs.entries


def test_a_follower_leaves_out_a_batch_cut_by_the_fetch_limit(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader-0"), open_log(tmp_path / "follower-0")
    write(leader, "a")
    write(leader, "b")
    (part,) = leader.read(0, 10_000).parts
    append(follower, part[:-1], origin=Origin.REPLICATION)
    assert values(read_all(follower)) == ["a"]


def test_a_follower_may_begin_beyond_its_end_but_not_before(tmp_path: Path) -> None:
    follower = open_log(tmp_path / "follower-0")
    append(follower, memoryview(build(records("a"), base_offset=10)), origin=Origin.REPLICATION)
    assert follower.log_end_offset == 11
    with error_of(ErrorCode.UNKNOWN_SERVER_ERROR):
        append(follower, memoryview(build(records("b"), base_offset=10)), origin=Origin.REPLICATION)


def test_a_follower_refuses_damaged_bytes(tmp_path: Path) -> None:
    data = batch("a")
    data[70] ^= 1
    with error_of(ErrorCode.CORRUPT_MESSAGE):
        append(open_log(tmp_path / "follower-0"), data, origin=Origin.REPLICATION)


def test_a_follower_leaves_out_batches_of_a_newer_epoch_than_it_asked_in(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader-0"), open_log(tmp_path / "follower-0")
    for epoch in (2, 3, 2):
        append(leader, batch("a"), leader_epoch=epoch)
    (part,) = leader.read(0, 10_000).parts
    append(follower, part, leader_epoch=2, origin=Origin.REPLICATION)
    assert follower.log_end_offset == 1
    assert follower.epochs.entries == [(2, 0)]
