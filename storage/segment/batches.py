"""Walks the batches of a segment in any format: v2, and v0 and v1 in old data directories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch as v2
from protocol.records.batch import BatchHeader
from storage.failure import tell
from storage.segment.index import OffsetPosition

Window = Callable[[int, int], memoryview]
"""Returns the bytes [start, end) of a file."""

_PLACE = Struct(">qi4xb6xi")
"""Base offset, length, magic and last offset delta: the fields that give a batch's position and offsets."""
_PLACE_V0 = Struct(">qi4xb")
_OFFSET_AND_TIMESTAMP_V1 = Struct(">18xq")
_LEGACY_FRONT = Struct(">qiIbb")

_MIN_LENGTH_V0: Final = 14
"""Length of the shortest possible message: CRC, magic, attributes, and two null byte strings."""

READ_AHEAD_BYTES = 64 * 1024
"""Bytes of a file that a walk reads in one piece."""


class BatchPlace(NamedTuple):
    """A batch's position, size and last offset."""

    position: int
    size_bytes: int
    last_offset: int


def find_offset(buffer: memoryview, position: int, end: int, offset: int) -> BatchPlace | int:
    """Returns the first batch in buffer[position:end] whose last offset is at or after `offset`.

    Without such a batch, returns the position after the last batch that begins in the range. Raises
    KafkaError(CORRUPT_MESSAGE) for an invalid magic or length.
    """
    place = _PLACE.unpack_from
    while position + _PLACE.size <= end:
        last_offset, length, magic, delta = place(buffer, position)
        if magic == v2.MAGIC_V2:
            last_offset += delta
        elif not 0 <= magic < v2.MAGIC_V2:
            raise corrupt_magic(position, magic)
        if length < _MIN_LENGTH_V0:
            raise corrupt_length(position, length)
        if last_offset >= offset:
            return BatchPlace(position, length + v2.LOG_OVERHEAD, last_offset)
        position += length + v2.LOG_OVERHEAD
    if position + _MIN_LENGTH_V0 + v2.LOG_OVERHEAD == end:  # one message without key and value, shorter than _PLACE
        last_offset, length, magic = _PLACE_V0.unpack_from(buffer, position)
        if magic < v2.MAGIC_V2 and last_offset >= offset:
            return BatchPlace(position, length + v2.LOG_OVERHEAD, last_offset)
    return position


def leads_to_batch(window: Window, base_offset: int, entry: OffsetPosition, end: int) -> bool:
    """True if an entry of the offset index points at a batch that can be the entry's batch."""
    if not 0 <= entry.position <= end - _PLACE.size:
        return False
    base_offset_found, length, magic, _ = _PLACE.unpack(window(entry.position, entry.position + _PLACE.size))
    return bool(length >= _MIN_LENGTH_V0 and magic <= v2.MAGIC_V2 and base_offset <= base_offset_found <= entry.offset)


def until_damage(batches: Iterator[tuple[int, BatchHeader]], path: str) -> Iterator[tuple[int, BatchHeader]]:
    """Yields a file's batches up to a damaged batch, which it logs."""
    try:
        yield from batches
    except KafkaError as error:
        tell("batch is damaged", path, reason=error.message)


def header_at(buffer: memoryview, position: int) -> BatchHeader:
    """Returns the header of a batch of any format. Raises KafkaError(CORRUPT_MESSAGE) if there are too few bytes.

    A v0 or v1 message gets an equivalent header: its base offset is the message's last offset, it has no producer, and
    for v0 no timestamp.
    """
    if v2.magic_at(buffer, position) >= v2.MAGIC_V2:
        return v2.read_header(buffer, position)
    offset, length, crc, magic, attributes = _LEGACY_FRONT.unpack_from(buffer, position)
    timestamp = v2.NO_TIMESTAMP
    if magic and len(buffer) - position >= _OFFSET_AND_TIMESTAMP_V1.size:
        (timestamp,) = _OFFSET_AND_TIMESTAMP_V1.unpack_from(buffer, position)
    return BatchHeader(offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, 1)


def check(buffer: memoryview, position: int, header: BatchHeader) -> None:
    """Checks that a batch of any format is complete and valid. Raises KafkaError(CORRUPT_MESSAGE or INVALID_RECORD)."""
    if header.magic >= v2.MAGIC_V2:
        v2.validate(buffer, position, header)
        return
    covered = buffer[position + v2.AT_MAGIC : position + header.size_bytes]
    if header.magic < 0 or len(covered) != header.size_bytes - v2.AT_MAGIC or crc32(covered) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a message's CRC-32 is not {header.crc:#010x}, as it says")


def walk(window: Window, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of the batches in [start, end) of a file, without a batch that reaches beyond the end.

    Reads the file piece by piece with `window`. Raises KafkaError(CORRUPT_MESSAGE) for an invalid magic or length.
    """
    position = start
    piece, piece_start = memoryview(b""), start
    while end - position >= v2.LOG_OVERHEAD + _MIN_LENGTH_V0:
        at = position - piece_start
        if at + v2.HEADER_SIZE > len(piece) and piece_start + len(piece) < end:
            piece, piece_start, at = window(position, min(end, position + READ_AHEAD_BYTES)), position, 0
        if len(piece) - at < v2.HEADER_SIZE and piece[at + v2.AT_MAGIC] >= v2.MAGIC_V2:
            return
        header = header_at(piece, at)
        if not 0 <= header.magic <= v2.MAGIC_V2:
            raise corrupt_magic(position, header.magic)
        if header.batch_length < _MIN_LENGTH_V0:
            raise corrupt_length(position, header.batch_length)
        next_position = position + header.size_bytes
        if next_position > end:
            return
        yield position, header
        position = next_position


def corrupt_magic(position: int, magic: int) -> KafkaError:
    """Returns the error for a batch with an unknown magic."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at byte {position} says that its magic is {magic}")


def corrupt_length(position: int, length: int) -> KafkaError:
    """Returns the error for a batch with an impossible length."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at byte {position} says that its length is {length}")


def misplaced(position: int, base_offset: int, next_offset: int) -> KafkaError:
    """Returns the error for a batch with an impossible base offset, which no CRC covers."""
    text = f"the batch at byte {position} begins at offset {base_offset}, but {next_offset} is next"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, text)
