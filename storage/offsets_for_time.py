"""Finding offsets by timestamp, exactly to the record, for ListOffsets (KIP-33, KIP-734)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from protocol.records.batch import MAGIC_V2, NO_TIMESTAMP, BatchHeader
from protocol.records.message_set import read_messages
from protocol.records.record import iter_raw
from storage.segment import Segment
from storage.segments import Segments


class TimestampAndOffset(NamedTuple):
    """A record found by time; the leader epoch that it was written in, None when the log does not know it."""

    timestamp: int
    offset: int
    leader_epoch: int | None


def offset_for_timestamp(segments: Segments, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
    """The first record at or after `start_offset` whose timestamp is at least the given one."""
    for segment in segments.since(start_offset):
        if segment.largest_timestamp() >= timestamp:
            before = segment.time_index.lookup(timestamp).offset
            position = segment.index.lookup(max(before, start_offset)).position
            found = _first(segment, position, timestamp, start_offset)
            if found is not None:
                return found
    return None


def max_timestamp(segments: Segments, start_offset: int) -> TimestampAndOffset | None:
    """The record with the largest timestamp of those from `start_offset` on, the first of several in its batch."""
    live = segments.since(start_offset)
    segment = max(live, key=lambda segment: segment.max_timestamp.timestamp)
    largest, last_offset = segment.max_timestamp
    if largest < 0:
        return None
    if last_offset >= start_offset:
        found = _first(segment, segment.index.lookup(last_offset).position, largest, start_offset)
        if found is not None:
            return found
    return _largest_of_all(live, start_offset)


def _largest_of_all(segments: Sequence[Segment], start_offset: int) -> TimestampAndOffset | None:
    """The record with the largest timestamp, when the one that the indexes know of was deleted."""
    best: TimestampAndOffset | None = None
    for segment in segments:
        for at, header in segment.batches():
            if header.max_timestamp > (NO_TIMESTAMP if best is None else best.timestamp):
                for offset, found in _timestamps(segment, at, header):
                    if offset >= start_offset and found > (NO_TIMESTAMP if best is None else best.timestamp):
                        best = TimestampAndOffset(found, offset, _epoch(header))
    return best


def _first(segment: Segment, position: int, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
    """The first record from a batch's position on that is at least that late, and not deleted."""
    for at, header in segment.batches(position):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            for offset, found in _timestamps(segment, at, header):
                if found >= timestamp and offset >= start_offset:
                    return TimestampAndOffset(found, offset, _epoch(header))
    return None


def _timestamps(segment: Segment, position: int, header: BatchHeader) -> list[tuple[int, int]]:
    """(offset, timestamp) of each record of a batch."""
    view = segment.view(position, position + header.size_bytes)
    if header.magic < MAGIC_V2:
        return [(record.offset, record.timestamp) for record in read_messages(view)]
    return [(offset, timestamp) for offset, timestamp, _ in iter_raw(view, 0, header)]


def _epoch(header: BatchHeader) -> int | None:
    return header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
