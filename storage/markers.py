"""Reads the batches that have a producer, and the transaction markers in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protocol.records.batch import CONTROL, BatchHeader
from protocol.records.control import decode_marker
from protocol.records.record import read_records
from storage.appending.append import Prepared
from storage.producers.entry import CompletedTxn, EndMarker
from storage.producers.state import ProducerBatch, ProducerState
from storage.segment.segment import Segment
from storage.segment.txn_index import AbortedTxn


def marker_in(buffer: memoryview, position: int, header: BatchHeader, transaction_version: int = 0) -> EndMarker | None:
    """Returns the marker in a control batch; None if compaction has emptied the batch, or for another kind of control
    record. Raises KafkaError(CORRUPT_MESSAGE).
    """
    record = next(read_records(buffer, position, header), None)
    marker = None if record is None else decode_marker(record)
    if record is None or marker is None:
        return None
    return EndMarker(not marker.is_commit, marker.coordinator_epoch, record.timestamp, transaction_version)


def producing(prepared: Prepared, transaction_version: int) -> list[ProducerBatch]:
    """Returns the batches of an append that have a producer."""
    batches = []
    for buffer, header in _bytes_of(prepared):
        if header.producer_id >= 0:
            marker = marker_in(buffer, 0, header, transaction_version) if header.attributes & CONTROL else None
            batches.append(ProducerBatch(header, header.base_offset, marker))
    return batches


def _bytes_of(prepared: Prepared) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Yields the bytes and header of each batch. An append has a buffer for each batch, or a single buffer."""
    if len(prepared.buffers) == len(prepared.batches):
        for buffer, header in zip(prepared.buffers, prepared.batches, strict=True):
            yield memoryview(buffer), header
        return
    whole, position = memoryview(prepared.buffers[0]), 0
    for header in prepared.batches:
        yield whole[position : position + header.size_bytes], header
        position += header.size_bytes


def take_over(batches: Sequence[ProducerBatch], state: ProducerState, segment: Segment) -> None:
    """Updates the producer state with batches that were written to the segment, and adds aborted transactions to the
    segment's index."""
    for header, base_offset, marker in batches:
        completed = state.update(header, base_offset, header.max_timestamp, marker)
        if completed is not None:
            if completed.aborted:
                segment.txn_index.append(_aborted(completed, state))
            state.complete(completed)


def _aborted(completed: CompletedTxn, state: ProducerState) -> AbortedTxn:
    stable = state.last_stable_offset(completed)
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
