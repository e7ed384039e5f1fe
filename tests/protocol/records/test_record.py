"""Tests the records in a v2 batch: they are decoded unchanged, and invalid bytes are rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, read_header
from protocol.records.building import assemble, build
from protocol.records.compression import Compression
from protocol.records.record import (
    RawRecord,
    Record,
    encode_headers,
    encode_records,
    encode_values,
    iter_keys,
    read_records,
    wrap_int64,
)
from protocol.records.whole import iter_whole_times, read_whole

nullable_bytes = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=8), nullable_bytes), max_size=3).map(tuple)
timestamps = st.integers(-1, 2**45) | st.integers(-(2**63), 2**63 - 1)
records = st.lists(st.builds(Record, st.just(0), timestamps, nullable_bytes, nullable_bytes, header_lists), min_size=1)


def numbered(given: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(given)]


def batch_of(encoded: bytes | bytearray, count: int = 1) -> tuple[bytearray, BatchHeader]:
    """Returns a batch that contains exactly these bytes."""
    header = read_header(build([Record()]))._replace(records_count=count, last_offset_delta=count)
    batch = assemble(header, encoded)
    return batch, read_header(batch)


def refusal(encoded: bytes | bytearray, count: int = 1) -> str:
    batch, header = batch_of(encoded, count)
    with pytest.raises(KafkaError) as caught:
        list(read_records(batch, 0, header))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value.message


@given(records, st.sampled_from(Compression), st.integers(0, 2**60))
def test_records_come_back(given: list[Record], codec: Compression, base_offset: int) -> None:
    batch = build(given, base_offset=base_offset, compression=codec)
    expected = numbered(given, base_offset)
    header = read_header(batch)
    assert list(read_records(batch, 0, header)) == expected
    assert list(read_whole(batch, 0, header)) == expected
    assert list(iter_whole_times(batch, 0, header)) == [(record.offset, record.timestamp) for record in expected]
    assert [(raw.offset, raw.timestamp, raw.key, raw.value_is_null) for raw in iter_keys(batch, 0, header)] == [
        (record.offset, record.timestamp, record.key, record.value is None) for record in expected
    ]


def test_header_keys_that_are_not_utf8_keep_their_bytes() -> None:
    encoded = bytes.fromhex("18 00 00 00 01 01 02 04 ff61 02 62".replace(" ", ""))
    batch, header = batch_of(bytes([2 * (len(encoded) - 1)]) + encoded[1:])
    (record,) = read_records(batch, 0, header)
    assert record.headers == (("\udcffa", b"b"),)
    assert bytes(encode_records([record], [0], record.timestamp)) == bytes(header.payload(batch, 0))


def test_log_append_time_replaces_the_records_own() -> None:
    batch = build([Record(0, 10), Record(0, 20)], log_append_time_ms=99)
    header = read_header(batch)
    assert [record.timestamp for record in read_records(batch, 0, header)] == [99, 99]
    assert [timestamp for _, timestamp in iter_whole_times(batch, 0, header)] == [99, 99]


def test_raw_records_keep_their_encoded_rest() -> None:
    batch = build([Record(0, 0, b"k", None, (("h", b"x"),))])
    (raw,) = iter_keys(batch, 0, read_header(batch))
    assert raw == RawRecord(0, 0, b"k", True, bytes.fromhex("026b 01 02 02 68 02 78".replace(" ", "")))


def test_timestamps_at_the_ends_of_64_bits_come_back() -> None:
    given = [Record(timestamp=timestamp) for timestamp in (2**63 - 1, -(2**63), 2**63 - 1, -(2**63) + 62)]
    batch = build(given)
    assert [record.timestamp for record in read_records(batch, 0, read_header(batch))] == [
        record.timestamp for record in given
    ]


def test_timestamps_further_apart_than_63_bits_wrap() -> None:
    assert wrap_int64(2**63) == -(2**63)
    assert wrap_int64(-(2**63) - 1) == 2**63 - 1


def test_bytes_after_the_last_record() -> None:
    encoded = encode_records([Record(0, -1)], [0], -1)
    assert "1 bytes are left" in refusal(encoded + b"\0")
    assert "left" in refusal(encoded + encoded)


def test_fewer_records_than_the_header_says() -> None:
    assert "end inside a record" in refusal(encode_records([Record(0, -1)], [0], -1), count=2)
    assert "end inside a record" in refusal(b"", count=2**31 - 2)


@pytest.mark.parametrize(
    "encoded",
    [
        "0a 00 00 00 01 01",  # five bytes, where six are the least
        "01 00 00 00 01 01 00",  # a negative length
        "7e 00 00 00 01 01 00",  # a length past the end
        "0c 00 00 00 01 01 02",  # a header that is not there
        "0c 00 00 00 01 01 01",  # minus one header
        "0c 00 00 00 01 02 00",  # a value that takes the headers' place, and then no headers
        "0c 00 00 00 04 01 00",  # a key longer than what is left
        "0c 00 00 80 80 80 00",  # an offset delta that takes all that is left
        "0e 00 00 00 01 01 00 00",  # a byte after the headers
        "0c 80 80 80 80 80 80",  # a varint that does not end
        "10 00 00 00 01 01 02 01 01",  # a header with a null key
        "10 00 00 00 01 01 04 00 00",  # two headers with room for one
        "12 00 00 00 01 01 02 00 06 61",  # a header's value past the end
        "0c 00 00 00 01 01 80",  # a headers count that is cut
    ],
)
def test_bytes_that_are_no_record(encoded: str) -> None:
    refusal(bytes.fromhex(encoded.replace(" ", "")))


@pytest.mark.parametrize("codec", Compression, ids=lambda codec: codec.name)
def test_inflating_is_bounded(codec: Compression) -> None:
    batch = build([Record(0, 0, None, bytes(100_000))], compression=codec)
    header = read_header(batch)
    assert list(read_records(batch, 0, header, max_size=110_000))
    if codec:
        with pytest.raises(KafkaError, match="inflate to more than 90000 bytes"):
            list(read_records(batch, 0, header, max_size=90_000))


@given(
    st.lists(st.binary(max_size=300) | st.binary(min_size=8000, max_size=8300), min_size=1, max_size=300),
    st.none() | st.binary(max_size=10),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
)
def test_values_are_encoded_like_records(
    values: list[bytes], key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    records = [Record(0, 5, key, value, tuple(headers)) for value in values]
    assert encode_values(values, key, encode_headers(headers)) == encode_records(records, range(len(values)), 5)
