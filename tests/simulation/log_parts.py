"""The state of a log's world between its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.compression import Compression
from storage.cleaner.job import Cleaned, CleanedSegment
from storage.log import Log
from tests.simulation.log_model import Model

POLICIES = (("delete",), ("compact",), ("compact", "delete"), ("compact",))
CODECS = (Compression.NONE, Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4)


class Cleaning(NamedTuple):
    """A cleaning in progress, between two of its segments."""

    log: Log
    steps: Iterator[CleanedSegment | Cleaned]
    end_offset: int
    truncations: int


class Held(NamedTuple):
    """A view that a consumer has, and its content when it was read."""

    view: memoryview
    content: bytes


def able(pid: int, log: Log, model: Model) -> int:
    """Returns the producer; None if only its marker is left, because it would first have to request a new epoch."""
    state = log.producer_state.producers.get(pid)
    stuck = state is not None and state.last_sequence < 0 and model.last_of_producer(pid) is not None
    return -1 if stuck else pid
