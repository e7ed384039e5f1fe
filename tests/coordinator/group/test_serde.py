"""Tests the records of groups in batches: gathered, divided, with producers, and decoded."""

from __future__ import annotations

import pytest

from coordinator.group.records import AnyRecord, EndTransaction, GroupRecord, committed, offset_commit, offset_gone
from coordinator.group.serde import GroupSerde
from protocol.coordinator_records import encode_key
from protocol.coordinator_records.offsets import OffsetCommitKey
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.records.batch import BatchHeader
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record

NOW_MS = 1_700_000_000_000


def serde(max_batch_bytes: int = 1_048_588, compression: Compression = Compression.NONE) -> GroupSerde:
    return GroupSerde(lambda: max_batch_bytes, lambda: compression)


def offset(number: int, *, metadata: str = "", producer_id: int = -1) -> GroupRecord:
    value = committed(number, 0, metadata, NOW_MS)
    epoch = -1 if producer_id < 0 else 0
    return offset_commit("group", "topic", number, value, producer_id, epoch)


def headers(batches: bytearray) -> list[BatchHeader]:
    return [header for _, header in batch.iter_batches(batches)]


def through(made: GroupSerde, records: list[AnyRecord]) -> tuple[list[BatchHeader], list[AnyRecord]]:
    batches = made.batches(made.encode(records, NOW_MS))
    return headers(batches), list(made.decode(batches))


def plain(records: list[AnyRecord]) -> list[AnyRecord]:
    """Returns records as they are decoded: the value's version is not kept."""
    return [record._replace(version=0) if isinstance(record, GroupRecord) else record for record in records]


def test_records_make_one_batch_and_come_back() -> None:
    records: list[AnyRecord] = [offset(1), offset(2), offset_gone("group", "topic", 1)]
    (header,), again = through(serde(), records)
    assert (header.records_count, header.producer_id, header.compression) == (3, -1, Compression.NONE)
    assert again == plain(records)


def test_the_bytes_are_those_of_apache_kafka() -> None:
    (encoded,) = serde().encode([offset(5, metadata="x")], NOW_MS)
    assert (
        encoded.record.key
        == bytes.fromhex("0001 0005") + b"group" + bytes.fromhex("0005") + b"topic" + bytes(3) + b"\5"
    )
    assert encoded.record.value == (
        bytes.fromhex("0004 0000000000000005 00000000 02") + b"x" + NOW_MS.to_bytes(8, "big") + b"\0"
    )


def test_a_commit_with_a_retention_of_its_own_is_of_the_version_that_has_it() -> None:
    value = committed(5, 0, "", NOW_MS, NOW_MS + 1000)
    (encoded,) = serde().encode([offset_commit("g", "t", 0, value)], NOW_MS)
    assert encoded.record.value is not None
    assert encoded.record.value[:2] == b"\0\1"
    assert encoded.record.value.endswith((NOW_MS + 1000).to_bytes(8, "big"))


def test_what_does_not_fit_into_one_batch_goes_into_several() -> None:
    records: list[AnyRecord] = [offset(number, metadata="m" * 100) for number in range(20)]
    headers, again = through(serde(max_batch_bytes=1000), records)
    assert len(headers) > 1
    assert all(header.size_bytes <= 1000 for header in headers)
    assert again == plain(records)


def test_a_record_that_no_batch_can_hold_is_refused_before_anything_is_written() -> None:
    with pytest.raises(KafkaError) as caught:
        serde(max_batch_bytes=1000).encode([offset(1), offset(2, metadata="m" * 1000)], NOW_MS)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_name_too_long_for_a_record_is_refused() -> None:
    value = committed(1, 0, "", NOW_MS)
    with pytest.raises(KafkaError) as caught:
        serde().encode([offset_commit("g" * 40_000, "t", 0, value)], NOW_MS)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_offsets_of_transactions_are_in_batches_of_their_producer() -> None:
    records: list[AnyRecord] = [
        offset(1),
        offset(2, producer_id=7),
        offset(3, producer_id=7),
        offset(4, producer_id=8),
        EndTransaction(7, 0, True, 3),
        EndTransaction(8, 0, False, 3),
    ]
    headers, again = through(serde(), records)
    assert [(h.producer_id, h.is_transactional, h.is_control, h.records_count) for h in headers] == [
        (-1, False, False, 1),
        (7, True, False, 2),
        (8, True, False, 1),
        (7, True, True, 1),
        (8, True, True, 1),
    ]
    assert again == plain(records)


def test_batches_are_compressed_as_the_options_say() -> None:
    records: list[AnyRecord] = [offset(number) for number in range(50)]
    (header,), again = through(serde(compression=Compression.ZSTD), records)
    assert header.compression is Compression.ZSTD
    assert again == plain(records)


def test_records_of_types_from_the_future_are_passed_over() -> None:
    valid = Record(0, NOW_MS, encode_key(OffsetCommitKey(group="g", topic="t", partition=0)), None)
    unknown = Record(0, NOW_MS, b"\0\x7fwhatever", b"\0\0whatever")
    assert list(serde().decode(build([unknown, valid]))) == [offset_gone("g", "t", 0)]


def test_bytes_that_are_no_record_are_corrupt_and_say_where() -> None:
    broken = build([Record(0, NOW_MS, b"\0\1\0\xffgroup", b"")], base_offset=12)
    with pytest.raises(KafkaError, match="offset 12") as caught:
        list(serde().decode(broken))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
