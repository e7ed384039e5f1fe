"""Finds the end of a segment and checks its indexes, without scanning the segment."""

from __future__ import annotations

from storage.segment.batches import leads_to_batch, misplaced
from storage.segment.index import CorruptIndex, OffsetPosition
from storage.segment.segment import Segment


def find_end(segment: Segment) -> OffsetPosition:
    """Returns offset and position after the last whole batch, reading from the last index entry on. Raises
    KafkaError(CORRUPT_MESSAGE)."""
    next_offset, end = segment.base_offset, segment.index.lookup(segment.index.last_offset).position
    for position, header in segment.batches(end):
        if header.base_offset < next_offset:
            raise misplaced(position, header.base_offset, next_offset)
        next_offset, end = header.next_offset, position + header.size_bytes
    return OffsetPosition(next_offset, end)


def check_indexes(segment: Segment) -> None:
    """Checks the last entries of offset and time index against the batches, because appends continue from them. Raises
    CorruptIndex, and KafkaError(CORRUPT_MESSAGE)."""
    index, time_index = segment.index, segment.time_index
    index.sanity_check()
    time_index.sanity_check()
    if index.entries:
        last, end_offset = index.lookup(index.last_offset), find_end(segment).offset
        if not leads_to_batch(segment.view, segment.base_offset, last, segment.size_bytes):
            raise CorruptIndex(f"{index.path}: offset {last.offset} at byte {last.position}: no batch begins there")
        if last.offset >= end_offset:
            raise CorruptIndex(f"{index.path}: offset {last.offset} is beyond the segment's end, {end_offset}")
    if not segment.has_timestamp(time_index.last_entry):
        raise CorruptIndex(f"{time_index.path}: no batch has the last entry's timestamp and offset")
