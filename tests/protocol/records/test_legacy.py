"""Tests the conversion of old clients' message sets to v2 batches, and of v2 batches to message sets."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, Buffer, TimestampType, read_header, validate, validate_from_client
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.control import ControlType, EndTxnMarker, end_txn_batch
from protocol.records.legacy import down_convert, up_convert
from protocol.records.message_set import encode_message_set, iter_messages, read_messages
from protocol.records.record import Record, read_records

LEGACY_CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
every_codec = pytest.mark.parametrize("codec", LEGACY_CODECS, ids=lambda codec: codec.name)
both_magics = pytest.mark.parametrize("magic", [0, 1])

RECORDS = [Record(0, 300, b"a", b"1"), Record(1, 100, None, b"2" * 300), Record(2, 200, b"c", None)]


def without_timestamps(records: list[Record]) -> list[Record]:
    return [record._replace(timestamp=-1) for record in records]


def read(batch: bytearray) -> tuple[BatchHeader, list[Record]]:
    header = read_header(batch)
    validate(batch, 0, header)
    assert header.size_bytes == len(batch)
    return header, list(read_records(batch, 0, header))


def code_of_up(message_set: Buffer) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        up_convert(message_set)
    return caught.value.code


# up


@both_magics
@every_codec
def test_a_message_set_becomes_one_batch_of_its_codec(magic: int, codec: Compression) -> None:
    header, records = read(up_convert(encode_message_set(RECORDS, magic, compression=codec)))
    validate_from_client(header)
    assert records == (RECORDS if magic else without_timestamps(RECORDS))
    assert header.compression is codec
    assert header.max_timestamp == (300 if magic else -1)
    assert header.producer_id < 0


@both_magics
@every_codec
def test_a_topic_s_codec_replaces_the_producer_s(magic: int, codec: Compression) -> None:
    batch = up_convert(encode_message_set(RECORDS, magic, compression=codec), compression=Compression.ZSTD)
    header, records = read(batch)
    assert header.compression is Compression.ZSTD
    assert len(records) == 3
    uncompressed, _ = read(up_convert(encode_message_set(RECORDS, magic), compression=Compression.NONE))
    assert uncompressed.compression is Compression.NONE


def test_offsets_that_a_producer_made_up_do_not_matter() -> None:
    made_up = [record._replace(offset=offset) for record, offset in zip(RECORDS, (9, 9, 7), strict=True)]
    _, records = read(up_convert(encode_message_set(made_up, 1)))
    assert [record.offset for record in records] == [0, 1, 2]


def test_nothing_becomes_nothing() -> None:
    assert up_convert(b"") == b""
    assert up_convert(encode_message_set(RECORDS[:1], 1)[:-1]) == b""


def test_log_append_time_set_by_a_producer_is_kept_to_be_found() -> None:
    message_set = encode_message_set(RECORDS, 1, compression=Compression.GZIP, log_append_time_ms=50)
    header, records = read(up_convert(message_set))
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in records} == {50}


def test_mixed_magics() -> None:
    assert code_of_up(encode_message_set(RECORDS, 0) + encode_message_set(RECORDS, 1)) is ErrorCode.INVALID_RECORD


def test_a_wrapper_has_nothing_beside_it() -> None:
    compressed = encode_message_set(RECORDS, 1, compression=Compression.GZIP)
    for message_set in (compressed + compressed, compressed + encode_message_set(RECORDS, 1)):
        assert code_of_up(message_set) is ErrorCode.INVALID_RECORD
    assert code_of_up(encode_message_set(RECORDS, 1) + compressed) is ErrorCode.INVALID_RECORD


def test_a_negative_timestamp() -> None:
    assert code_of_up(encode_message_set([Record(0, -2)], 1)) is ErrorCode.INVALID_TIMESTAMP


def test_a_batch_is_no_message_set() -> None:
    assert code_of_up(build(RECORDS)) is ErrorCode.CORRUPT_MESSAGE


# down


@both_magics
@every_codec
def test_a_batch_becomes_a_message_set_of_its_codec(magic: int, codec: Compression) -> None:
    batch = build(RECORDS, base_offset=40, compression=codec)
    down = down_convert(batch, magic, 40)
    expected = [record._replace(offset=record.offset + 40) for record in RECORDS]
    assert list(read_messages(down)) == (expected if magic else without_timestamps(expected))
    assert [message.compression for message in iter_messages(down)] == ([codec] if codec else [0, 0, 0])
    assert {message.magic for message in iter_messages(down)} == {magic}


def test_records_below_the_first_offset_go_from_uncompressed_batches_only() -> None:
    batch = build(RECORDS, base_offset=10)
    compressed = build(RECORDS, base_offset=10, compression=Compression.GZIP)
    assert [record.offset for record in read_messages(down_convert(batch, 1, 11))] == [11, 12]
    assert [record.offset for record in read_messages(down_convert(compressed, 1, 11))] == [10, 11, 12]


def test_log_append_time_stays_in_magic_1() -> None:
    batch = build(RECORDS, log_append_time_ms=77)
    down = down_convert(batch, 1, 0)
    assert {record.timestamp for record in read_messages(down)} == {77}
    assert {message.timestamp_type for message in iter_messages(down)} == {TimestampType.LOG_APPEND_TIME}
    assert {record.timestamp for record in read_messages(down_convert(batch, 0, 0))} == {-1}


def test_headers_and_control_batches_go() -> None:
    data = build([Record(0, 5, b"k", b"v", (("h", b"x"),))])
    marker = end_txn_batch(EndTxnMarker(ControlType.COMMIT, 1), 1, 0, now_ms=9)
    assert list(read_messages(down_convert(data + marker, 1, 0))) == [Record(0, 5, b"k", b"v")]


def test_a_batch_that_is_cut_is_left_out() -> None:
    first, second = build(RECORDS, base_offset=0), build(RECORDS, base_offset=3)
    assert [record.offset for record in read_messages(down_convert(first + second[:-1], 1, 0))] == [0, 1, 2]
    assert down_convert(first[:-1], 1, 0) == b""


def test_what_cannot_be_shown_is_an_incomplete_message() -> None:
    marker = end_txn_batch(EndTxnMarker(ControlType.ABORT, 1), 1, 0, now_ms=9)
    down = down_convert(marker, 1, 0)
    assert len(down) == 12
    assert list(read_messages(down)) == []


def test_zstd_cannot_be_shown_to_old_clients() -> None:
    zstd = build(RECORDS, base_offset=3, compression=Compression.ZSTD)
    with pytest.raises(KafkaError) as caught:
        down_convert(zstd, 1, 3)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [record.offset for record in read_messages(down_convert(build(RECORDS) + zstd, 1, 0))] == [0, 1, 2]


@both_magics
@every_codec
def test_down_and_up_again(magic: int, codec: Compression) -> None:
    batch = build([record._replace(timestamp=-1) for record in RECORDS], compression=codec)
    assert up_convert(down_convert(batch, magic, 0)) == batch
