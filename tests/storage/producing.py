"""Batches of producers, and their append."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL, TRANSACTIONAL, BatchHeader
from storage.producers.entry import CompletedTxn, EndMarker, Origin
from storage.producers.state import ProducerState

PID = 4000
DAY_MS = 86_400_000
COMMIT = EndMarker(aborted=False, coordinator_epoch=1, timestamp=900)
ABORT = EndMarker(aborted=True, coordinator_epoch=1, timestamp=900)


def batch(
    sequence: int,
    *,
    count: int = 1,
    pid: int = PID,
    epoch: int = 0,
    attributes: int = 0,
    timestamp: int = 500,
) -> BatchHeader:
    return BatchHeader(0, 49, 0, 2, 0, attributes, count - 1, timestamp, timestamp, pid, epoch, sequence, count)


def marker_batch(*, pid: int = PID, epoch: int = 0) -> BatchHeader:
    return batch(-1, pid=pid, epoch=epoch, attributes=TRANSACTIONAL | CONTROL)


def append(
    state: ProducerState,
    header: BatchHeader,
    offset: int,
    *,
    marker: EndMarker | None = None,
    origin: Origin = Origin.CLIENT,
) -> CompletedTxn | None:
    """Appends a batch that is not a duplicate, as the log does."""
    assert state.check(header, origin, marker=marker) is None
    completed = state.update(header, offset, header.max_timestamp, marker)
    if completed is not None:
        state.complete(completed)
    state.end_offset = offset + header.last_offset_delta + 1
    return completed


def error_of(state: ProducerState, header: BatchHeader, origin: Origin = Origin.CLIENT, **more: EndMarker) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        state.check(header, origin, marker=more.get("marker"))
    return error.value.code
