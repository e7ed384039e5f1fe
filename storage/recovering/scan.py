"""Reading a segment through after an unclean stop: which of its batches are good, and the producers and epochs in them.

Kafka class LogSegment (recover).
"""

from __future__ import annotations

from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    CONTROL,
    HEADER_SIZE,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    BatchHeader,
    read_header,
)
from storage.epochs import LeaderEpochCache
from storage.markers import marker_in, take_over
from storage.producers.state import ProducerBatch, ProducerState
from storage.segment.batches import Window, check
from storage.segment.index import MAX_RELATIVE_OFFSET
from storage.segment.segment import Segment
from storage.segment.time_index import NO_TIMESTAMP, TimestampOffset


class Scan(NamedTuple):
    """The result of reading a segment through."""

    valid_bytes: int
    next_offset: int
    """The offset after the good bytes."""
    problem: str | None
    """The fault of the next batch; None when there is none."""
    is_dense: bool
    """True when it has every offset from its base offset on, as a log has that was never compacted."""


class OffsetBounds(NamedTuple):
    """The offsets that a segment can have, as far as other files tell."""

    limit: int
    """The offset at which the next segment begins, or beyond which the log can't end."""
    gaps: bool
    """True if its log may lack offsets, as a compacted one does."""


def scan(segment: Segment, producer_state: ProducerState, epochs: LeaderEpochCache, bounds: OffsetBounds) -> Scan:
    """Check each batch of a segment, and rebuild its indexes, the producers and the epochs from it."""
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
    """Notes the epoch of a batch. It counts, not the file, which may still have an epoch that a truncation took. Raises
    KafkaError for an epoch that can't be: no CRC covers it."""
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
    """Returns what is wrong with a batch's base offset, which is outside its CRC; None if it can be right.

    Behind a gap, what follows tells: offsets go on after the batch. If nothing follows, up to the bounds' limit, the
    log must be one that may have gaps.
    """
    if header.base_offset == next_offset or (header.magic < MAGIC_V2 and header.base_offset > next_offset):
        return None  # a compressed message has the offset of the last one in it
    text = f"a batch of offsets {header.base_offset} to {header.last_offset} where {next_offset} is next"
    limit = bounds.limit if following is None else min(following, bounds.limit)
    if header.base_offset > next_offset and header.next_offset > limit:
        return f"{text}, before {limit}"
    return text if header.base_offset < next_offset or not (bounds.gaps or header.next_offset == limit) else None


def _replay(segment: Segment, view: memoryview, header: BatchHeader, producer_state: ProducerState) -> None:
    """Take over a batch's producer, and the transaction that it ends."""
    if header.producer_id < 0:
        return
    marker = marker_in(view, 0, header) if header.attributes & CONTROL else None
    take_over([ProducerBatch(header, header.base_offset, marker)], producer_state, segment)
