"""Finding offsets by timestamp, exactly to the record, for ListOffsets (KIP-33, KIP-734)."""

from __future__ import annotations

from typing import NamedTuple

from protocol.records.batch import MAGIC_V2, BatchHeader
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
    segment = next((segment for segment in segments if segment.largest_timestamp() >= timestamp), None)
    if segment is None:
        return None
    before = segment.time_index.lookup(timestamp).offset
    position = segment.index.lookup(max(before, start_offset)).position
    for at, header in segment.batches(position):
        if header.max_timestamp >= timestamp:
            for offset, found in _timestamps(segment, at, header):
                if found >= timestamp and offset >= start_offset:
                    return TimestampAndOffset(found, offset, _epoch(header))
    return None


def max_timestamp(segments: Segments) -> TimestampAndOffset | None:
    """The first record of the batch that has the largest timestamp of all, among those with that timestamp."""
    segment = max(segments, key=lambda segment: segment.max_timestamp.timestamp)
    largest, last_offset = segment.max_timestamp
    if largest < 0:
        return None
    for at, header in segment.batches(segment.index.lookup(last_offset).position):
        if header.max_timestamp == largest:
            for offset, found in _timestamps(segment, at, header):
                if found == largest:
                    return TimestampAndOffset(largest, offset, _epoch(header))
    return None


def _timestamps(segment: Segment, position: int, header: BatchHeader) -> list[tuple[int, int]]:
    """(offset, timestamp) of each record of a batch."""
    view = segment.view(position, position + header.size_bytes)
    if header.magic < MAGIC_V2:
        return [(record.offset, record.timestamp) for record in read_messages(view)]
    return [(offset, timestamp) for offset, timestamp, _ in iter_raw(view, 0, header)]


def _epoch(header: BatchHeader) -> int | None:
    return header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
