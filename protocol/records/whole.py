"""Reads compressed records and messages while they are inflated, with the memory of a piece and a record.

Used in threads, for records that are searched or converted after their append: a batch of a megabyte may inflate to a
hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, KafkaError
from protocol.records.codecs import pieces
from protocol.records.compression import TooLarge
from protocol.records.record import (
    LARGEST_RECORD,
    MAX_INFLATED_SIZE,
    Record,
    decode_all,
    iter_times,
    too_large,
)
from protocol.records.varint import decode_varint

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader, Buffer


def whole(inflated: Iterator[bytes], end_of: Callable[[bytes, int], int], max_size: int) -> Iterator[tuple[bytes, int]]:
    """Yields the whole items of a stream piece by piece: their bytes and their number. An incomplete item at the
    stream's end counts as an item.

    `end_of` returns the end of the item at a position, which is after the data's end if the item needs more bytes.
    Raises TooLarge for more than `max_size` bytes, and the KafkaError(CORRUPT_MESSAGE) that `inflated` raises.
    """
    held: list[bytes] = []
    held_bytes, needed_bytes, left = 0, 1, max_size
    for piece in inflated:
        left -= len(piece)
        if left < 0:
            raise TooLarge(max_size)
        held.append(piece)
        held_bytes += len(piece)
        if held_bytes < needed_bytes:
            continue
        data = b"".join(held)
        at = count = 0
        while (end := end_of(data, at)) <= held_bytes:
            at, count = end, count + 1
        if count:
            yield data[:at], count
        held, held_bytes, needed_bytes = [data[at:]], held_bytes - at, end - at
    if held_bytes:
        yield b"".join(held), 1


def read_whole(
    buffer: Buffer, position: int, header: BatchHeader, *, max_size: int = MAX_INFLATED_SIZE
) -> Iterator[Record]:
    """Yields the records of a batch as `read_records` does, a piece at a time."""
    for data, part in _parts(buffer, position, header, max_size):
        yield from decode_all(data, part)


def iter_whole_times(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    max_size: int = MAX_INFLATED_SIZE,
    largest: int = LARGEST_RECORD,
) -> Iterator[tuple[int, int]]:
    """Yields (offset, timestamp) of each record. Raises the errors of `read_records`, and INVALID_RECORD for a
    compressed record of more than `largest` bytes."""
    for data, part in _parts(buffer, position, header, max_size, largest):
        yield from iter_times(data, part)


def _parts(
    buffer: Buffer, position: int, header: BatchHeader, max_size: int, largest: int = LARGEST_RECORD
) -> Iterator[tuple[bytes, BatchHeader]]:
    """Yields some encoded records, and a header with their count."""
    payload = header.payload(buffer, position)
    if not header.compression:
        max_size = max(max_size, len(payload))  # uncompressed records have their size on disk
        largest = LARGEST_RECORD
    left = header.records_count
    for data, count in whole(pieces(header.compression, payload), partial(record_end, largest=largest), max_size):
        left -= count
        if left < 0:
            break
        yield data, header._replace(records_count=count)
    if left:
        message = f"the batch's records are not {header.records_count}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def record_end(data: bytes, at: int, largest: int = LARGEST_RECORD) -> int:
    """Returns the end of the record at `at`, or a position after the data if its length is incomplete. A negative
    length counts as 0. Raises INVALID_RECORD for a record of more than `largest` bytes."""
    try:
        length, begin = decode_varint(data, at)
    except IndexError:
        return len(data) + 1
    if length > largest:
        raise too_large(length, largest)
    return begin + max(length, 0)
