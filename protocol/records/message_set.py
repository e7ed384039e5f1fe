"""Message sets of magic 0 and 1, as clients before 0.11 send and read them (Produce 0–2, Fetch 0–3).

    offset i64 · size i32 · CRC-32 u32 · magic i8 · attributes i8 · [timestamp i64, magic 1] · key · value

with key and value after an int32 length each, -1 for null. Compression puts a message set into the value of a wrapper
message. Inner offsets are absolute in magic 0, and relative in magic 1, where the wrapper has the absolute offset of
the last message (KIP-31). The timestamp of a wrapper with LogAppendTime applies to all inner messages (KIP-32). Source:
the protocol guide's "Message sets"; org.apache.kafka.common.record.AbstractLegacyRecordBatch, LegacyRecord.

The log stores only v2 batches, so produced message sets are converted up, and fetched batches down (`legacy.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple
from zlib import crc32

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import COMPRESSION_MASK, LOG_OVERHEAD, NO_TIMESTAMP, TIMESTAMP_TYPE, Buffer, TimestampType
from protocol.records.codecs import pieces, stream
from protocol.records.compression import PIECE_BYTES, Compression, TooLarge
from protocol.records.record import LARGEST_RECORD, MAX_INFLATED_SIZE, Record, too_large
from protocol.records.whole import whole

MAGIC_V0 = 0
MAGIC_V1 = 1

_OVERHEAD = struct.Struct(">qi")
_HEAD = (struct.Struct(">IBb"), struct.Struct(">IBbq"))  # by magic: CRC, magic, attributes, and the timestamp of v1
_INT32 = struct.Struct(">i")
_MIN_SIZE = tuple(head.size + 8 for head in _HEAD)  # and the lengths of key and value
_CRC_SIZE = 4


class LegacyMessage(NamedTuple):
    """A message, or the wrapper of a compressed set. Key and value are views of the buffer that was read."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None

    @property
    def compression(self) -> int:
        """The codec's number, which may be invalid."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """The source of the timestamp. CREATE_TIME for magic 0, which has no timestamp."""
        appended = self.magic == MAGIC_V1 and self.attributes & TIMESTAMP_TYPE
        return TimestampType.LOG_APPEND_TIME if appended else TimestampType.CREATE_TIME


def iter_messages(
    buffer: Buffer, start: int = 0, end: int | None = None, *, wrapper_magic: int | None = None
) -> Iterator[LegacyMessage]:
    """Yields the messages of a set, without unwrapping. As in Kafka, leaves out an incomplete last message.

    Raises KafkaError: CORRUPT_MESSAGE for a wrong CRC, size or magic, which producers retry; INVALID_RECORD for a magic
    other than the wrapper's, and for fields that are longer than their message.
    """
    view = memoryview(buffer)[start:end]
    at = 0
    while at + LOG_OVERHEAD <= len(view):
        offset, size = _OVERHEAD.unpack_from(view, at)
        if size < _MIN_SIZE[MAGIC_V0]:
            raise _corrupt(f"a message of {size} bytes; at least {_MIN_SIZE[MAGIC_V0]} are required")
        at += LOG_OVERHEAD
        if at + size > len(view):
            return
        yield _parse(offset, view[at : at + size], wrapper_magic)
        at += size


def _parse(offset: int, message: memoryview, wrapper_magic: int | None) -> LegacyMessage:
    magic = message[_CRC_SIZE]
    if wrapper_magic not in (None, magic):
        raise _invalid(f"a message of magic {magic} in a wrapper of magic {wrapper_magic}")
    if magic > MAGIC_V1:
        raise _corrupt(f"a message of magic {magic}, but 0 or 1 is expected")
    head = _HEAD[magic]
    if len(message) < _MIN_SIZE[magic]:
        raise _corrupt(f"a message of {len(message)} bytes; at least {_MIN_SIZE[magic]} are required in magic {magic}")
    crc, _, attributes, *timestamps = head.unpack_from(message)
    if crc32(message[_CRC_SIZE:]) != crc:
        raise _corrupt(f"a message's CRC-32 is {crc32(message[_CRC_SIZE:]):#010x}, its header says {crc:#010x}")
    key, at = _nullable_bytes(message, head.size)
    value, _ = _nullable_bytes(message, at)  # as in Kafka, bytes after the value are ignored
    return LegacyMessage(offset, magic, attributes, timestamps[0] if timestamps else NO_TIMESTAMP, key, value)


def _nullable_bytes(message: memoryview, at: int) -> tuple[memoryview | None, int]:
    left = len(message) - at - _INT32.size
    if left < 0:
        raise _invalid("a message ends before its last field")
    (length,) = _INT32.unpack_from(message, at)
    at += _INT32.size
    if length < 0:
        return None, at
    if length > left:
        raise _invalid(f"a field has {length} bytes, but only {left} bytes of its message are left")
    return message[at : at + length], at + length


def read_messages(
    buffer: Buffer,
    start: int = 0,
    end: int | None = None,
    *,
    max_size: int = MAX_INFLATED_SIZE,
    largest: int = LARGEST_RECORD,
) -> Iterator[Record]:
    """Yields the records of a message set with their absolute offsets, and inflates compressed sets.

    Raises the errors of `iter_messages`. Raises CORRUPT_MESSAGE for a set that inflates to more than `max_size` bytes,
    and INVALID_RECORD for invalid wrappers, and for a message of more than `largest` bytes in a wrapper.
    """
    for message in iter_messages(buffer, start, end):
        if message.compression:
            yield from _absolute(message, max_size, largest)
        else:
            yield to_record(message)


def to_record(message: LegacyMessage) -> Record:
    """Returns a message as a record, with copies of its key and value."""
    key, value = message.key, message.value
    return Record(
        message.offset, message.timestamp, None if key is None else bytes(key), None if value is None else bytes(value)
    )


def unwrap(
    wrapper: LegacyMessage, max_size: int = MAX_INFLATED_SIZE, largest: int = LARGEST_RECORD
) -> Iterator[LegacyMessage]:
    """Yields the messages inside a wrapper, with their inner offsets. LogAppendTime replaces their timestamps.

    Messages are views of an inflated piece. Raises the errors of `read_messages`.
    """
    if wrapper.compression not in _LEGACY_CODECS:
        raise _invalid(f"compression codec {wrapper.compression} does not exist in magic {wrapper.magic}")
    if wrapper.value is None:
        raise _invalid("a compressed message set with a null value")
    appended = wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME
    last: int | None = None
    for data, _ in whole(_inflated(wrapper), partial(message_end, largest=largest), max_size):
        for message in iter_messages(data, wrapper_magic=wrapper.magic):
            if message.compression:
                raise _invalid("a compressed message in a compressed message set")
            last = message.offset
            yield message._replace(timestamp=wrapper.timestamp) if appended else message
    if last is None:
        raise _invalid("a compressed message set without messages")
    if _is_relative(wrapper) and wrapper.offset < last:
        raise _invalid(f"a wrapper has offset {wrapper.offset}, which is less than its last inner offset {last}")


def _inflated(wrapper: LegacyMessage) -> Iterator[bytes]:
    """Yields the wrapper's message set in pieces. Damage raises INVALID_RECORD, which is not retriable: the CRC was
    valid, so that the client sent the damage and would send it again."""
    assert wrapper.value is not None
    try:
        yield from pieces(Compression(wrapper.compression), wrapper.value, magic=wrapper.magic)
    except KafkaError as error:
        raise _invalid(error.message) from None


def _is_relative(wrapper: LegacyMessage) -> bool:
    """True if inner offsets are relative to the wrapper's. Some versions of librdkafka write 0 as the wrapper's offset,
    with inner offsets from 0 on."""
    return wrapper.magic == MAGIC_V1 and wrapper.offset != 0


_LEGACY_CODECS = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4)


def message_end(data: bytes, at: int, largest: int = LARGEST_RECORD) -> int:
    """Returns the end of the message at `at`, or a position after the data if its size is missing. A negative size
    counts as 0. Raises INVALID_RECORD for a message of more than `largest` bytes."""
    begin = at + LOG_OVERHEAD
    if begin > len(data):
        return len(data) + 1
    size: int = _INT32.unpack_from(data, begin - _INT32.size)[0]
    if size > largest:
        raise too_large(size, largest)
    return begin + max(size, 0)


def _absolute(wrapper: LegacyMessage, max_size: int, largest: int) -> Iterator[Record]:
    base = 0
    if _is_relative(wrapper):
        last = 0
        for message in unwrap(wrapper, max_size, largest):  # the first record's offset depends on the last message's
            last = message.offset
        base = wrapper.offset - last
    for message in unwrap(wrapper, max_size, largest):
        yield to_record(message._replace(offset=base + message.offset))


class MessageSet:
    """Builds a message set message by message, in a wrapper if compressed."""

    def __init__(
        self,
        magic: int,
        compression: Compression,
        log_append_time_ms: int | None,
        max_size: int,
        level: int | None = None,
    ) -> None:
        """Creates an empty set. With `log_append_time_ms` all messages have that timestamp."""
        self.size_bytes = 0
        """The size of the messages before compression."""
        self._magic = magic
        self._compression = compression
        self._time_ms = log_append_time_ms
        self._attributes = TIMESTAMP_TYPE if magic == MAGIC_V1 and log_append_time_ms is not None else 0
        self._max_size = max_size
        self._recoder = stream(compression, level, magic=magic)
        self._encoded, self._piece = bytearray(), bytearray()
        self._first_offset: int | None = None
        self._last_offset = 0
        self._largest = NO_TIMESTAMP

    def add(self, record: Record) -> None:
        """Adds the next message, whose offset must be higher. Raises TooLarge if the set exceeds `max_size`."""
        offset = self._last_offset = record.offset
        if self._first_offset is None:
            self._first_offset = offset if self._magic == MAGIC_V1 and self._compression else 0
        timestamp = record.timestamp if self._time_ms is None else self._time_ms
        self._largest = max(self._largest, timestamp)
        message = _encode(
            offset - self._first_offset, self._magic, self._attributes, timestamp, record.key, record.value
        )
        self.size_bytes += len(message)
        if self.size_bytes > self._max_size:
            raise TooLarge(self._max_size)
        self._piece += message
        if len(self._piece) >= PIECE_BYTES:
            self._encoded += self._recoder.write(bytes(self._piece))
            self._piece.clear()

    def end(self) -> bytearray:
        """Returns the set, which is empty without messages."""
        if self._first_offset is None:
            return bytearray()
        self._encoded += self._recoder.write(bytes(self._piece))
        self._encoded += self._recoder.end()
        if not self._compression:
            return self._encoded
        attributes = self._attributes | self._compression
        return _encode(self._last_offset, self._magic, attributes, self._largest, None, self._encoded)


def encode_message_set(
    records: Iterable[Record],
    magic: int,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """Returns a set with a message for each record, in a wrapper if compressed. Drops headers, which the format lacks.

    With `log_append_time_ms` all messages have that timestamp. `records` must be ordered by offset. Raises TooLarge.
    """
    messages = MessageSet(magic, compression, log_append_time_ms, MAX_INFLATED_SIZE, level)
    for record in records:
        messages.add(record)
    return messages.end()


def _encode(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | bytearray | None
) -> bytearray:
    size = _MIN_SIZE[magic] + len(key or b"") + len(value or b"")
    message = bytearray(_OVERHEAD.pack(offset, size))
    fields = (0, magic, attributes, timestamp) if magic == MAGIC_V1 else (0, magic, attributes)
    message += _HEAD[magic].pack(*fields)
    for field in (key, value):
        message += _INT32.pack(-1 if field is None else len(field))
        message += field or b""
    covered = memoryview(message)[LOG_OVERHEAD + _CRC_SIZE :]
    crc = crc32(covered)
    covered.release()
    struct.pack_into(">I", message, LOG_OVERHEAD, crc)
    return message


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _invalid(message: str | None) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)
