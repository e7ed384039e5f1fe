"""Scans a segment after an unclean stop: validates its batches, and collects their producers and leader epochs.

Kafka class LogSegment (recover).
"""

from __future__ import annotations

from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL, HEADER_SIZE, MAGIC_V2, NO_PARTITION_LEADER_EPOCH, BatchHeader, read_header
from storage.epochs import LeaderEpochCache
from storage.markers import marker_in, take_over
from storage.producers.state import ProducerBatch, ProducerState
from storage.segment.batches import Window, check
from storage.segment.index import MAX_RELATIVE_OFFSET
from storage.segment.segment import Segment
from storage.segment.time_index import NO_TIMESTAMP, TimestampOffset


class Scan(NamedTuple):
    """The result of scanning a segment."""

    valid_bytes: int
    next_offset: int
    """The offset after the valid bytes."""
    problem: str | None
    """The error in the next batch; None if the whole segment is valid."""
    is_dense: bool
    """True if the segment has every offset from its base offset on, as in a log that was never compacted."""


class OffsetBounds(NamedTuple):
    """The offsets that a segment may have, according to other files."""

    limit: int
    """The base offset of the next segment, or the largest possible log end offset."""
    gaps: bool
    """True if the log may lack offsets, because it is compacted."""


def scan(segment: Segment, producer_state: ProducerState, epochs: LeaderEpochCache, bounds: OffsetBounds) -> Scan:
    """Checks each batch of a segment, and rebuilds the segment's indexes, the producers and the leader epochs."""
    segment.reset_indexes()
    maximum = TimestampOffset(NO_TIMESTAMP, segment.base_offset)
    valid_bytes, indexed_at, next_offset, problem, is_dense = 0, 0, segment.base_offset, None, True
    try:
        for position, header in segment.batches():
            view = segment.view(position, position + header.size_bytes)
            check(view, 0, header)
            _check_offsets(segment, position, header, next_offset, bounds)
            if header.max_timestamp > maximum.timestamp:
                maximum = TimestampOffset(header.max_timestamp, header.last_offset)
            if position - indexed_at > segment.index_interval_bytes and not segment.index.is_full:
                segment.index.append(header.last_offset, position)
                segment.time_index.maybe_append(maximum.timestamp, maximum.offset, skip_full_check=True)
                indexed_at = position
            note_epoch(epochs, header)
            _replay(segment, view, header, producer_state)
            is_full = header.records_count == header.last_offset_delta + 1
            is_dense = is_dense and is_full and header.base_offset == next_offset
            valid_bytes, next_offset = position + header.size_bytes, header.next_offset
    except KafkaError as error:
        problem = error.message
    if problem is None and valid_bytes < segment.size_bytes:
        problem = "the last batch is incomplete"
    segment.max_timestamp = maximum
    segment.time_index.maybe_append(maximum.timestamp, maximum.offset, skip_full_check=True)
    return Scan(valid_bytes, next_offset, problem, is_dense)


def note_epoch(epochs: LeaderEpochCache, header: BatchHeader) -> None:
    """Adds a batch's leader epoch, which overrides the epochs file, because the file may still have a truncated epoch.
    Raises KafkaError for an invalid epoch, which no CRC covers.
    """
    epoch = header.partition_leader_epoch
    if epoch < NO_PARTITION_LEADER_EPOCH:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is of epoch {epoch}")
    if epoch != NO_PARTITION_LEADER_EPOCH and epochs.epoch_for_offset(header.last_offset) != epoch:
        epochs.assign(epoch, header.base_offset)


def _check_offsets(
    segment: Segment, position: int, header: BatchHeader, next_offset: int, bounds: OffsetBounds
) -> None:
    fault = None
    if header.base_offset != next_offset:
        following = following_offset(segment.view, position + header.size_bytes, segment.size_bytes)
        fault = order_fault(header, next_offset, following, bounds)
    if fault is None and header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        fault = f"a batch up to offset {header.last_offset} in the segment of {segment.base_offset}"
    if fault is not None:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, fault)


def following_offset(window: Window, position: int, end: int) -> int | None:
    """Returns the base offset of the batch at this position of a file; None if no whole header is there."""
    if position + HEADER_SIZE > end:
        return None
    header = read_header(window(position, position + HEADER_SIZE))
    return header.base_offset if header.magic == MAGIC_V2 else None


def order_fault(header: BatchHeader, next_offset: int, following: int | None, bounds: OffsetBounds) -> str | None:
    """Returns the error in a batch's base offset, which no CRC covers; None if the offset may be valid.

    After a gap, a batch is valid only if the offsets that follow continue after it. If no batch follows, it is valid
    only if it ends at the bounds' limit or the log may have gaps.
    """
    if header.base_offset == next_offset or (header.magic < MAGIC_V2 and header.base_offset > next_offset):
        return None  # a compressed message has the offset of the last one in it
    text = f"a batch of offsets {header.base_offset} to {header.last_offset}, but {next_offset} is next"
    limit = bounds.limit if following is None else min(following, bounds.limit)
    if header.base_offset > next_offset and header.next_offset > limit:
        return f"{text}, before {limit}"
    return text if header.base_offset < next_offset or not (bounds.gaps or header.next_offset == limit) else None


def _replay(segment: Segment, view: memoryview, header: BatchHeader, producer_state: ProducerState) -> None:
    """Applies a batch's producer, and the transaction that it ends."""
    if header.producer_id < 0:
        return
    marker = marker_in(view, 0, header) if header.attributes & CONTROL else None
    take_over([ProducerBatch(header, header.base_offset, marker)], producer_state, segment)
