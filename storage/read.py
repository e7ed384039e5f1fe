"""Reads batches from a log's segments without copying them. Kafka class LocalLog."""

from __future__ import annotations

from typing import NamedTuple

from storage.segment.file import EMPTY
from storage.segment.segment import Segment
from storage.segment.segments import Segments
from storage.segment.txn_index import AbortedTxn


class ReadResult(NamedTuple):
    """Batches as they are in the log. The first may begin before the requested offset; the last may be incomplete."""

    parts: list[memoryview]
    size_bytes: int
    start_offset: int
    """The requested offset."""


def read(
    segments: Segments, offset: int, limit: int, log_end_offset: int, max_bytes: int, *, min_one: bool
) -> memoryview:
    """Reads batches from `offset` on whose offsets are below `limit`, from a single segment, as Kafka does.

    If compaction has removed the rest of the offset's segment, reads from the next segment that has batches.
    """
    active = segments.active
    if offset >= active.base_offset:
        view = active.read(offset, max_bytes, end_position(active, limit, log_end_offset), min_one=min_one)
        return EMPTY if view is None else view
    for segment in segments.since(offset):
        view = segment.read(offset, max_bytes, end_position(segment, limit, log_end_offset), min_one=min_one)
        if view is not None:
            return view
    return EMPTY


def end_position(segment: Segment, limit: int, log_end_offset: int) -> int:
    """Returns the position in the segment of the first batch with offsets at or beyond `limit`."""
    if limit == log_end_offset:
        return segment.size_bytes
    if limit <= segment.base_offset:
        return 0
    place = segment.locate(limit)
    return segment.size_bytes if place is None else place.position


def aborted_transactions(segments: Segments, from_offset: int, to_offset: int) -> list[AbortedTxn]:
    """Returns the aborted transactions with records in [from, to). Their markers may be in later segments."""
    transactions: list[AbortedTxn] = []
    for segment in segments.since(from_offset):
        aborted, complete = segment.txn_index.collect(from_offset, to_offset)
        transactions += aborted
        if complete:
            break
    return transactions


def upper_bound_offset(segments: Segments, result: ReadResult, log_end_offset: int) -> int:
    """Returns an offset beyond all records in a read's result, close enough to search its aborted transactions."""
    segment = segments.containing(result.start_offset)
    place = segment.locate(result.start_offset)
    if place is not None:
        bound = segment.index.upper_bound(place.position + result.size_bytes)
        if bound is not None:
            return bound.offset
    return segments.end_of(segment, log_end_offset)
