"""Rebuilds a log's producer state from the newest snapshot and the batches after it."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.errors import KafkaError
from protocol.records.batch import CONTROL
from storage.failure import tell
from storage.markers import marker_in
from storage.producers.state import ProducerBatch, ProducerState
from storage.segment.segment import Segment
from storage.segment.segments import Segments


def rebuild_producers(
    state: ProducerState,
    segments: Segments,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
    *,
    clean: bool = False,
) -> None:
    """Rebuilds the producer state of a log that ends at `log_end_offset`: loads the newest snapshot, then replays the
    batches after it.

    A cleanly closed log without a snapshot was written before Kafka had snapshots, and has no producers.
    """
    if clean and state.latest_snapshot_offset is None:
        for offset in [*segments.base_offsets[-2:], log_end_offset]:
            state.end_offset = offset
            state.take_snapshot()
        return
    empty = state.is_empty and state.end_offset >= log_end_offset
    state.truncate_and_reload(log_start_offset, log_end_offset, now_ms)
    if log_end_offset > state.end_offset and not empty:
        for segment in segments.since(state.end_offset):
            if segment.base_offset < log_end_offset:
                state.end_offset = max(segment.base_offset, state.end_offset, log_start_offset)
                if segment.base_offset in segments.base_offsets[-2:]:
                    state.take_snapshot(sync=False)
                state.replay(_producing(segment, state.end_offset, log_end_offset))
    state.end_offset = log_end_offset
    state.take_snapshot(sync=False)


def _producing(segment: Segment, start_offset: int, end_offset: int) -> Iterator[ProducerBatch]:
    """Yields the batches with producers in a range of a segment, up to a damaged batch."""
    try:
        place = segment.locate(start_offset)
        for position, header in () if place is None else segment.batches(place.position):
            if header.base_offset >= end_offset:
                return
            if header.producer_id >= 0:
                marker = None
                if header.attributes & CONTROL:
                    marker = marker_in(segment.view(position, position + header.size_bytes), 0, header)
                yield ProducerBatch(header, header.base_offset, marker)
    except KafkaError as error:
        tell("batch is damaged", segment.path, reason=error.message)
