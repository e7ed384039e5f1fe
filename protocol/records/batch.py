"""The v2 record batch (KIP-98, org.apache.kafka.common.record.DefaultRecordBatch), read and stamped in place.

    base offset i64 · batch length i32 · partition leader epoch i32 · magic i8 · CRC u32 ·
    attributes i16 · last offset delta i32 · base timestamp i64 · max timestamp i64 ·
    producer id i64 · producer epoch i16 · base sequence i32 · records count i32 · records

The batch length counts the bytes after it. The CRC-32C covers the bytes from the attributes on, so that the broker can
write base offset and leader epoch without a new CRC. Functions take any buffer and a position, and copy no records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from mmap import mmap
from typing import Final, NamedTuple, TypeAlias

from protocol.errors import ErrorCode, KafkaError
from protocol.records.checksum import crc32c
from protocol.records.compression import Compression
from protocol.tuples import new_tuple

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
WritableBuffer: TypeAlias = bytearray | memoryview

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = (
    12  # base offset and length: what every version of an entry starts with, and its length leaves out
)

AT_BASE_OFFSET: Final = 0
AT_LENGTH: Final = 8
AT_LEADER_EPOCH: Final = 12
AT_MAGIC: Final = 16  # the same place in v0, v1 and v2
AT_CRC: Final = 17
AT_ATTRIBUTES: Final = 21  # the CRC covers the batch from here on
AT_LAST_OFFSET_DELTA: Final = 23
AT_BASE_TIMESTAMP: Final = 27
AT_MAX_TIMESTAMP: Final = 35
AT_PRODUCER_ID: Final = 43
AT_PRODUCER_EPOCH: Final = 51
AT_BASE_SEQUENCE: Final = 53
AT_RECORDS_COUNT: Final = 57
MAGIC_V2: Final = 2

_MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
assert HEADER.size == HEADER_SIZE

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1
MAX_SEQUENCE: Final = 0x7FFFFFFF

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_UINT32: Final = struct.Struct(">I")
_CODECS: Final = tuple(Compression)
_unpack_header = HEADER.unpack_from


class TimestampType(IntEnum):
    """The source of a batch's timestamps: its producer, or the broker that appended it (KIP-32)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, as on the wire and on disk."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number. Sequence numbers wrap from 2^31 - 1 to 0."""
        return NO_SEQUENCE if self.base_sequence == NO_SEQUENCE else self.sequence_after(self.last_offset_delta)

    def sequence_after(self, delta: int) -> int:
        """Returns the sequence number `delta` records after the first."""
        return (self.base_sequence + delta) & MAX_SEQUENCE

    @property
    def compression(self) -> Compression:
        """The batch's codec. Raises KafkaError(INVALID_RECORD) for the three unused codec numbers."""
        codec = self.attributes & COMPRESSION_MASK
        if codec >= len(_CODECS):
            raise KafkaError(ErrorCode.INVALID_RECORD, f"compression codec {codec} is unknown; the codecs are 0 to 4")
        return _CODECS[codec]

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove the batch's tombstones and markers (KIP-534). Stored in the base
        timestamp field."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def payload(self, buffer: Buffer, position: int) -> memoryview:
        """Returns the batch's stored records, which may be compressed."""
        return memoryview(buffer)[position + HEADER_SIZE : position + LOG_OVERHEAD + self.batch_length]


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Returns the unchecked header at `position`. Raises KafkaError(CORRUPT_MESSAGE) if fewer than 61 bytes remain."""
    try:
        return new_tuple(BatchHeader, _unpack_header(buffer, position))
    except struct.error:
        raise _corrupt(f"{len(buffer) - position} bytes are too few for a record batch: its header has 61") from None


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """True if the batch's CRC-32C is that in its header."""
    covered = memoryview(buffer)[position + AT_ATTRIBUTES : position + LOG_OVERHEAD + header.batch_length]
    return crc32c(covered) == header.crc


def validate(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Checks the rules for batches of any source; `validate_from_client` has the rules for clients.

    Raises KafkaError: CORRUPT_MESSAGE for a wrong magic, length or CRC (DefaultRecordBatch.ensureValid), INVALID_RECORD
    for an unknown codec, or for more records than offsets (compaction leaves fewer records, never more).
    """
    length = header.batch_length
    if header.magic != MAGIC_V2 or length < _MIN_LENGTH:
        raise _malformed(header)
    covered = memoryview(buffer)[position + AT_ATTRIBUTES : position + LOG_OVERHEAD + length]
    if len(covered) != length - (AT_ATTRIBUTES - LOG_OVERHEAD):
        raise _corrupt(
            f"a record batch of {length + LOG_OVERHEAD} bytes, of which only {len(buffer) - position} have arrived"
        )
    if crc32c(covered) != header.crc:
        raise _corrupt(f"a record batch's CRC-32C is {crc32c(covered):#010x}, its header says {header.crc:#010x}")
    if header.attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise _invalid(f"compression codec {header.attributes & COMPRESSION_MASK} is unknown; the codecs are 0 to 4")
    if not 0 <= header.records_count <= header.last_offset_delta + 1:
        raise _invalid(f"{header.records_count} records contradict the last offset delta {header.last_offset_delta}")


def validate_from_client(header: BatchHeader) -> None:
    """Checks the rules for batches that producers send (LogValidator.validateBatch). Raises
    KafkaError(INVALID_RECORD)."""
    count = header.records_count
    if count <= 0 or count != header.last_offset_delta + 1:
        raise _invalid(f"{count} records in a batch of last offset delta {header.last_offset_delta}")
    if header.attributes & CONTROL:
        raise _invalid("clients must not write control batches")
    if header.base_sequence < 0 and header.producer_id > NO_PRODUCER_ID:
        raise _invalid(f"base sequence {header.base_sequence} of producer id {header.producer_id} is negative")


def magic_at(buffer: Buffer, position: int = 0) -> int:
    """Returns the magic of the entry at `position`: 0 and 1 for messages, 2 for a batch. Raises
    KafkaError(CORRUPT_MESSAGE)."""
    if len(buffer) <= position + AT_MAGIC:
        raise _corrupt(f"{len(buffer) - position} bytes are too few for a record: its magic is byte {AT_MAGIC}")
    return memoryview(buffer)[position + AT_MAGIC]


def iter_batches(buffer: Buffer, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of every whole batch in `buffer[start:end]`, without an incomplete last batch.

    Checks only the fields that lead to the next batch, not the CRC. Raises KafkaError(CORRUPT_MESSAGE) for an
    impossible length, or a magic other than 2.
    """
    limit = len(buffer) if end is None else min(end, len(buffer))
    position = start
    while position + HEADER_SIZE <= limit:
        header = new_tuple(BatchHeader, _unpack_header(buffer, position))
        if header.magic != MAGIC_V2 or header.batch_length < _MIN_LENGTH:
            raise _malformed(header)
        next_position = position + LOG_OVERHEAD + header.batch_length
        if next_position > limit:
            return
        yield position, header
        position = next_position


def stamp(buffer: WritableBuffer, position: int, base_offset: int, leader_epoch: int) -> None:
    """Writes the batch's base offset and leader epoch, which the CRC doesn't cover."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + AT_LEADER_EPOCH, leader_epoch)


def set_max_timestamp(buffer: WritableBuffer, position: int, kind: TimestampType, max_timestamp: int) -> None:
    """Sets timestamp type and max timestamp. Computes a new CRC only if one of them changes."""
    header = read_header(buffer, position)
    attributes = header.attributes & ~TIMESTAMP_TYPE | kind << 3
    if attributes != header.attributes or max_timestamp != header.max_timestamp:
        struct.pack_into(">h", buffer, position + AT_ATTRIBUTES, attributes)
        _INT64.pack_into(buffer, position + AT_MAX_TIMESTAMP, max_timestamp)
        seal(buffer, position, header.batch_length)


def seal(buffer: WritableBuffer, position: int, batch_length: int) -> None:
    """Computes and writes the CRC-32C of the batch."""
    covered = memoryview(buffer)[position + AT_ATTRIBUTES : position + LOG_OVERHEAD + batch_length]
    _UINT32.pack_into(buffer, position + AT_CRC, crc32c(covered))


def _malformed(header: BatchHeader) -> KafkaError:
    if header.magic != MAGIC_V2:
        return _corrupt(f"a record batch of magic {header.magic}, but 2 is expected")
    return _corrupt(f"a record batch's length is {header.batch_length}; at least {_MIN_LENGTH} is required")


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)
