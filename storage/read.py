"""Reading batches out of a log's segments, as memory that is not copied. Kafka class LocalLog."""

from __future__ import annotations

from typing import NamedTuple

from storage.segment.file import EMPTY
from storage.segment.segment import Segment
from storage.segment.segments import Segments
from storage.segment.txn_index import AbortedTxn


class ReadResult(NamedTuple):
    """Batches as they are in the log. The first may begin before the offset asked for, the last may be cut short."""

    parts: list[memoryview]
    size_bytes: int
    start_offset: int
    """The offset that was asked for."""


def read(
    segments: Segments, offset: int, limit: int, log_end_offset: int, max_bytes: int, *, min_one: bool
) -> memoryview:
    """Reads batches from `offset` on whose offsets are below `limit`; of one segment only, as Kafka does it.

    When compaction has taken the rest of the segment that the offset is in, of the next one.
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
    """Returns where in the segment the first batch that has offsets at or beyond `limit` begins."""
    if limit == log_end_offset:
        return segment.size_bytes
    if limit <= segment.base_offset:
        return 0
    place = segment.locate(limit)
    return segment.size_bytes if place is None else place.position


def aborted_transactions(segments: Segments, from_offset: int, to_offset: int) -> list[AbortedTxn]:
    """Returns the aborted transactions with records in [from, to), wherever their markers are."""
    transactions: list[AbortedTxn] = []
    for segment in segments.since(from_offset):
        aborted, complete = segment.txn_index.collect(from_offset, to_offset)
        transactions += aborted
        if complete:
            break
    return transactions


def upper_bound_offset(segments: Segments, result: ReadResult, log_end_offset: int) -> int:
    """Returns an offset beyond everything in a read's result, near enough to ask for its aborted transactions."""
    segment = segments.containing(result.start_offset)
    place = segment.locate(result.start_offset)
    if place is not None:
        bound = segment.index.upper_bound(place.position + result.size_bytes)
        if bound is not None:
            return bound.offset
    return segments.end_of(segment, log_end_offset)
