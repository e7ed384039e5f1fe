"""Tests message sets of magic 0 and 1, including wrappers with their offsets and timestamps."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import Buffer, TimestampType
from protocol.records.codecs import compress
from protocol.records.compression import Compression
from protocol.records.message_set import encode_message_set, iter_messages, read_messages
from protocol.records.record import Record

LEGACY_CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
both_magics = pytest.mark.parametrize("magic", [0, 1])

nullable_bytes = st.none() | st.binary(max_size=100)
records = st.lists(
    st.builds(Record, st.just(0), st.integers(-1, 2**62), nullable_bytes, nullable_bytes, st.just(())),
    min_size=1,
    max_size=20,
)


def message(
    magic: int = 1, offset: int = 0, attributes: int = 0, timestamp: int = 5, value: bytes | None = b"v"
) -> bytes:
    """Returns a message with these fields."""
    body = struct.pack(">Bb", magic, attributes)
    body += struct.pack(">q", timestamp) if magic else b""
    body += struct.pack(">i", -1)
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def wrapper(inner: bytes, codec: int = Compression.GZIP, **kwargs: int) -> bytes:
    return message(attributes=codec | kwargs.pop("flags", 0), value=compress(Compression.GZIP, inner), **kwargs)


def code_of(message_set: Buffer) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        list(read_messages(message_set))
    return caught.value.code


@given(records, st.sampled_from([0, 1]), st.sampled_from(LEGACY_CODECS), st.integers(1, 2**60))
def test_records_come_back_with_their_offsets(given: list[Record], magic: int, codec: Compression, base: int) -> None:
    # every third offset, as compaction would leave them
    given = [record._replace(offset=base + 3 * index) for index, record in enumerate(given)]
    message_set = encode_message_set(given, magic, compression=codec)
    expected = given if magic else [record._replace(timestamp=-1) for record in given]
    assert list(read_messages(message_set)) == expected


@both_magics
def test_a_message_that_is_cut_is_left_out(magic: int) -> None:
    message_set = message(magic, 1) + message(magic, 2)
    assert [message.offset for message in iter_messages(message_set)] == [1, 2]
    for cut in range(1, len(message(magic))):
        assert [message.offset for message in iter_messages(message_set[:-cut])] == [1]


@both_magics
def test_every_flipped_byte_that_the_crc_covers_is_found(magic: int) -> None:
    message_set = bytearray(message(magic))
    for at in range(12, len(message_set)):
        message_set[at] ^= 0x10
        assert code_of(message_set) is ErrorCode.CORRUPT_MESSAGE
        message_set[at] ^= 0x10


@pytest.mark.parametrize("size", [-1, 0, 13])
def test_an_impossible_size(size: int) -> None:
    assert code_of(struct.pack(">qi", 0, size) + bytes(20)) is ErrorCode.CORRUPT_MESSAGE


def with_magic(magic: int) -> bytes:
    """Returns a message with another magic; its CRC is wrong, but the magic is checked first."""
    changed = bytearray(message())
    changed[16] = magic
    return bytes(changed)


def with_lengths(key_length: int, value_length: int) -> bytes:
    body = struct.pack(">Bbqii", 1, 0, 5, key_length, value_length) + b"1"
    return struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (2**31 - 1, 0)])
def test_a_field_longer_than_its_message(lengths: tuple[int, int]) -> None:
    assert code_of(with_lengths(*lengths)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("value_length", "value"), [(-1, None), (0, b"")])
def test_bytes_behind_the_value_are_passed_over(value_length: int, value: bytes | None) -> None:
    assert [record.value for record in read_messages(with_lengths(0, value_length))] == [value]


def test_a_message_too_short_for_its_magic() -> None:
    body = struct.pack(">Bbii", 1, 0, -1, -1)
    assert code_of(struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body) is ErrorCode.CORRUPT_MESSAGE


def test_inner_offsets_of_magic_1_are_relative_to_the_wrapper_s() -> None:
    message_set = wrapper(message(offset=0) + message(offset=1) + message(offset=4), offset=104)
    assert [record.offset for record in read_messages(message_set)] == [100, 101, 104]


def test_a_wrapper_of_offset_0_has_its_inner_offsets_as_they_are() -> None:
    message_set = wrapper(message(offset=0) + message(offset=1), offset=0)
    assert [record.offset for record in read_messages(message_set)] == [0, 1]


def test_inner_offsets_of_magic_0_are_absolute() -> None:
    message_set = wrapper(message(0, offset=70) + message(0, offset=71), magic=0, offset=71)
    assert [record.offset for record in read_messages(message_set)] == [70, 71]


def test_a_wrapper_s_log_append_time_is_that_of_all_inside() -> None:
    message_set = wrapper(message(timestamp=1) + message(timestamp=2), flags=0x08, timestamp=99)
    assert [record.timestamp for record in read_messages(message_set)] == [99, 99]
    (outer,) = iter_messages(message_set)
    assert outer.timestamp_type is TimestampType.LOG_APPEND_TIME


def test_magic_0_has_no_log_append_time() -> None:
    (outer,) = iter_messages(message(0, attributes=0x08))
    assert outer.timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.parametrize(
    "message_set",
    [
        wrapper(message(offset=9), offset=3),
        wrapper(message(0)),
        wrapper(message(1), magic=0),
        wrapper(wrapper(message())),
        wrapper(b""),
        wrapper(message()[:-1]),
        wrapper(message(), codec=Compression.ZSTD),
        wrapper(message(), codec=7),
        message(attributes=Compression.GZIP, value=None),
        message(attributes=Compression.GZIP, value=b"no stream"),
        wrapper(with_magic(2)),
    ],
    ids=[
        "an offset below its last inner one",
        "inner magic 0",
        "inner magic 1",
        "a wrapper inside",
        "nothing inside",
        "nothing whole inside",
        "zstd",
        "codec 7",
        "a null value",
        "no stream of its codec",
        "a batch's magic",
    ],
)
def test_wrappers_that_break_the_rules(message_set: bytes) -> None:
    assert code_of(message_set) is ErrorCode.INVALID_RECORD


def test_a_wrong_crc_inside_a_wrapper() -> None:
    inner = bytearray(message())
    inner[-1] ^= 1
    assert code_of(wrapper(bytes(inner))) is ErrorCode.CORRUPT_MESSAGE


def test_inflating_is_bounded() -> None:
    message_set = wrapper(message(value=bytes(100_000)))
    assert list(read_messages(message_set, max_size=101_000))
    with pytest.raises(KafkaError, match="inflate to more than 90000 bytes"):
        list(read_messages(message_set, max_size=90_000))


def test_headers_have_no_room() -> None:
    message_set = encode_message_set([Record(1, 5, b"k", b"v", (("h", b"x"),))], 1)
    assert list(read_messages(message_set)) == [Record(1, 5, b"k", b"v")]
