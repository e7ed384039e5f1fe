"""The records inside a v2 batch: inflated and decoded, or encoded (org.apache.kafka.common.record.DefaultRecord).

    length varint · attributes i8, unused · timestamp delta varlong · offset delta varint ·
    key length varint, -1 for null · key · value length varint · value · headers count varint · headers

The decoders accept any bytes, and return records or raise KafkaError(CORRUPT_MESSAGE): a valid CRC proves that the
sender sent these bytes, not that they are well-formed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, Buffer
from protocol.records.codecs import decompress
from protocol.records.varint import decode_varint, decode_varlong, encode_varint

# The default of socket.request.max.bytes: a larger batch could not have been sent uncompressed, and is probably an
# attack on the broker's memory.
MAX_INFLATED_SIZE: Final = 100 * 1024 * 1024

LARGEST_RECORD: Final = 0x7FFFFFF7
"""No limit for the size of a compressed record: the largest array that Java allocates."""

# Attributes, timestamp delta, offset delta, key length, value length and headers count take at least a byte each.
_MIN_RECORD_LENGTH: Final = 6
_COMPRESSION_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_FAR_TIMESTAMP: Final = 1 << 62  # ms; no real time, but a client may send it
_NEGATIVE: Final = 0x01  # the sign in the first byte of a varint; a negative length is null

SHORT: Final = 256
"""Length below which `encode_values` takes the varint of a length from a table."""

# The protocol requires UTF-8 in header keys, but Kafka doesn't check it. This keeps other bytes unchanged.
_KEEP_BYTES: Final = "surrogateescape"


class Record(NamedTuple):
    """A record. `timestamp` is in ms since 1970, or -1 for none. Header values may be null, header keys may not."""

    offset: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class RawRecord(NamedTuple):
    """A partly decoded record, for compaction. `body` has the encoded bytes after the offset delta."""

    offset: int
    timestamp: int
    key: bytes | None
    value_is_null: bool
    body: bytes


def read_records(
    buffer: Buffer, position: int, header: BatchHeader, *, max_size: int = MAX_INFLATED_SIZE
) -> Iterator[Record]:
    """Yields the records of a batch in order, with copies of their keys and values.

    Raises KafkaError: CORRUPT_MESSAGE if the bytes are not the header's number of well-formed records, or inflate to
    more than `max_size` bytes; INVALID_RECORD for an unknown codec.
    """
    return decode_all(inflate(buffer, position, header, max_size), header)


def iter_keys(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    max_size: int = MAX_INFLATED_SIZE,
    largest: int = LARGEST_RECORD,
) -> Iterator[RawRecord]:
    """Yields the partly decoded records, for compaction. Raises the errors of `read_records`, and INVALID_RECORD for a
    compressed record of more than `largest` bytes."""
    data = inflate(buffer, position, header, max_size)
    for offset, timestamp, at, end in _scan(data, header, largest if header.compression else LARGEST_RECORD):
        key, value_at = _nullable_bytes(data, at, end)
        if value_at >= end:
            raise _corrupt("a record ends before its last field")
        yield RawRecord(offset, timestamp, key, bool(data[value_at] & _NEGATIVE), data[at:end])


def inflate(buffer: Buffer, position: int, header: BatchHeader, max_size: int = MAX_INFLATED_SIZE) -> bytes:
    """Returns a batch's encoded records, decompressed. Raises the errors of `read_records`."""
    payload = header.payload(buffer, position)
    if not header.attributes & _COMPRESSION_MASK:
        return bytes(payload)
    return decompress(header.compression, payload, max_size=max_size)


def decode_all(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Decodes the records of a batch from their encoded bytes. Raises KafkaError(CORRUPT_MESSAGE)."""
    for offset, timestamp, at, end in _scan(data, header):
        key, at = _nullable_bytes(data, at, end)
        value, at = _nullable_bytes(data, at, end)
        if at == end - 1 and data[at] == 0:
            yield Record(offset, timestamp, key, value)
        else:
            yield Record(offset, timestamp, key, value, _headers(data, at, end))


def iter_times(data: bytes, header: BatchHeader) -> Iterator[tuple[int, int]]:
    """Yields (offset, timestamp) of each record, without decoding the rest. Raises the errors of `decode_all`."""
    for offset, timestamp, _, _ in _scan(data, header):
        yield offset, timestamp


def too_large(size: int, largest: int) -> KafkaError:
    """Returns the error for a compressed record that exceeds the topic's limit."""
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"Invalid record size: {size} exceeds the configured maximum record size of {largest}.",
    )


def _scan(data: bytes, header: BatchHeader, largest: int = LARGEST_RECORD) -> Iterator[tuple[int, int, int, int]]:
    """Yields (offset, timestamp, start of key length, end of record) of each record."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    log_append_time = header.max_timestamp if header.attributes & _LOG_APPEND_TIME else None
    # The fast path for one byte adds without wrapping, so it is disabled if the sum could exceed 64 bits.
    short_delta = 0x80 if -_FAR_TIMESTAMP < base_timestamp < _FAR_TIMESTAMP else 0
    at, size = 0, len(data)
    try:
        for _ in range(header.records_count):
            length = data[at]
            if length < 0x80:
                length = (length >> 1) ^ -(length & 1)
                at += 1
            else:
                length, at = decode_varint(data, at)
            end = at + length
            if length > largest:
                raise too_large(length, largest)
            if length < _MIN_RECORD_LENGTH or end > size:
                raise _corrupt(f"a record of {length} bytes, but only {size - at} are left")
            at += 1
            delta = data[at]
            if delta < short_delta:
                timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))
                at += 1
            else:
                delta, at = decode_varlong(data, at)
                timestamp = wrap_int64(base_timestamp + delta)
            delta = data[at]
            if delta < 0x80:
                delta = (delta >> 1) ^ -(delta & 1)
                at += 1
            else:
                delta, at = decode_varint(data, at)
            if at >= end:
                raise _corrupt(f"a record of {length} bytes ends inside its offset delta")
            yield base_offset + delta, timestamp if log_append_time is None else log_append_time, at, end
            at = end
    except IndexError:
        raise _corrupt(f"the batch's {size} bytes of records end inside a record") from None
    if at != size or header.records_count < 0:
        raise _corrupt(f"{size - at} bytes are left after the batch's {header.records_count} records")


def _nullable_bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Reads a length and its bytes within the record that ends at `end`; returns (bytes or None, position after)."""
    if at >= end:
        raise _corrupt("a record ends before its last field")
    length = data[at]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        at += 1
    else:
        length, at = _varint_within(data, at, end)
    if length < 0:
        # -1 is null; Kafka reads any negative length as null
        return None, at
    if length > end - at:
        raise _corrupt(f"a field of {length} bytes in a record with {end - at} left")
    return data[at : at + length], at + length


def _varint_within(data: bytes, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise _corrupt("a record ends before its last field")
    try:
        value, at = decode_varint(data, at)
    except IndexError:
        raise _corrupt("a record ends inside a varint") from None
    if at > end:
        raise _corrupt("a record ends inside a varint")
    return value, at


def _headers(data: bytes, at: int, end: int) -> tuple[tuple[str, bytes | None], ...]:
    count, at = _varint_within(data, at, end)
    # each header takes at least two bytes, for its two lengths
    if not 0 <= count <= (end - at) // 2:
        raise _corrupt(f"{count} headers, but only {end - at} bytes of the record are left")
    headers = []
    for _ in range(count):
        key, at = _nullable_bytes(data, at, end)
        value, at = _nullable_bytes(data, at, end)
        if key is None:
            raise _corrupt("a record header's key is null")
        headers.append((key.decode("utf-8", _KEEP_BYTES), value))
    if at != end:
        raise _corrupt(f"{end - at} bytes are left after a record's headers")
    return tuple(headers)


def wrap_int64(value: int) -> int:
    """Wraps `value` to int64, because the delta of timestamps that are far apart wraps around."""
    return (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def encode_records(records: Iterable[Record], offset_deltas: Iterable[int], base_timestamp: int) -> bytearray:
    """Encodes records with the given offset deltas, and with timestamps relative to `base_timestamp`."""
    encoded = bytearray()
    for record, offset_delta in zip(records, offset_deltas, strict=True):
        encoded += encode_record(offset_delta, record.timestamp - base_timestamp, encode_body(record))
    return encoded


def encode_values(values: Sequence[bytes], key: bytes | None, headers: bytes) -> bytes:
    """Encodes records that have the batch's timestamp, and differ only in their values. `headers` are encoded, as
    `encode_headers` returns them. Takes a fifth of the time of `encode_records`."""
    varints = _varints(max(len(values), SHORT).bit_length())
    own_key = b"".join(_encoded_bytes(key))
    fixed = 2 + len(own_key) + len(headers)  # attributes and timestamp take a byte each
    parts: list[bytes] = []
    for delta, value in enumerate(values):
        offset, size = varints[delta], len(value)
        length = varints[size] if size < SHORT else encode_varint(size)
        whole = fixed + len(offset) + len(length) + size
        parts += (
            varints[whole] if whole < SHORT else encode_varint(whole), b"\0\0", offset, own_key, length, value, headers,
        )  # fmt: skip
    return b"".join(parts)


@cache
def _varints(bits: int) -> tuple[bytes, ...]:
    """Returns the varints of all numbers of at most so many bits."""
    return tuple(encode_varint(number) for number in range(1 << bits))


def encode_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Encodes the headers of a record."""
    parts = [encode_varint(len(headers))]
    for key, value in headers:
        parts += _encoded_bytes(key.encode("utf-8", _KEEP_BYTES))
        parts += _encoded_bytes(value)
    return b"".join(parts)


def encode_record(offset_delta: int, timestamp_delta: int, body: bytes) -> bytes:
    """Encodes a record around its encoded key, value and headers."""
    head = b"\0" + encode_varint(wrap_int64(timestamp_delta)) + encode_varint(offset_delta)
    return encode_varint(len(head) + len(body)) + head + body


def encode_body(record: Record) -> bytes:
    """Encodes key, value and headers of a record."""
    return b"".join((*_encoded_bytes(record.key), *_encoded_bytes(record.value), encode_headers(record.headers)))


def _encoded_bytes(value: bytes | None) -> tuple[bytes, bytes]:
    return (b"\x01", b"") if value is None else (encode_varint(len(value)), value)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
