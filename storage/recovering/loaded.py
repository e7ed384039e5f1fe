"""A log as it was opened, and the report of what its recovery has done."""

from __future__ import annotations

import os
from typing import NamedTuple

from storage.epochs import LeaderEpochCache
from storage.producers.state import ProducerState
from storage.recovering.kept import Kept
from storage.segment.segments import Segments


class Cut(NamedTuple):
    """Where a log was cut, for its operator to be told."""

    path: str
    position: int
    """The segment file's size now."""
    offset: int
    """The first offset that is gone."""
    bytes_lost: int
    segments_lost: int
    reason: str
    set_aside: Kept | None = None
    """The readable part of what was cut, set aside; None if there was none."""

    def __str__(self) -> str:
        more = f" and {self.segments_lost} later segments" if self.segments_lost else ""
        where = f"byte {self.position}, offset {self.offset}"
        text = f"{self.path}: cut {self.bytes_lost} bytes{more} from {where} on: {self.reason}"
        if self.set_aside is None:
            return text
        records, size = self.set_aside.records, self.set_aside.bytes
        readable = f"{records} records of it can be read and are set aside in {size} bytes"
        return f"{text}; {readable}: odradek log repair {os.path.dirname(self.path)}"


class ClosedAt(NamedTuple):
    """Where a clean stop has closed a log."""

    recovery_point: int
    """The checkpointed one: the log's end, or the offset before it."""
    snapshot: int | None
    """The offset of the newest producer snapshot, which is the log's end; None if there is no snapshot."""


class Recovered(NamedTuple):
    """The report of opening a log after an unclean stop."""

    segments: int
    """How many were scanned."""
    bytes_scanned: int
    cut: Cut | None
    rebuilt: tuple[str, ...]
    """Segments whose missing or damaged indexes were made anew, though they needed no recovery."""
    doubt: str | None = None
    """How the log differed from what a clean stop leaves; it was recovered then. None after any other stop."""


class LoadedLog(NamedTuple):
    """A log as it was found, or made."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: LeaderEpochCache
    producer_state: ProducerState
    recovered: Recovered
    clean: bool
    """True when everything was as a clean stop left it."""
    is_new: bool = False
    """True when the folder was empty."""
