"""An opened log, and the report of its recovery."""

from __future__ import annotations

import os
from typing import NamedTuple

from storage.epochs import LeaderEpochCache
from storage.producers.state import ProducerState
from storage.recovering.kept import Kept
from storage.segment.segments import Segments


class Cut(NamedTuple):
    """The place at which recovery cut a log, for the operator."""

    path: str
    position: int
    """The segment file's size after the cut."""
    offset: int
    """The first lost offset."""
    bytes_lost: int
    segments_lost: int
    reason: str
    set_aside: Kept | None = None
    """The readable records that were set aside; None without any."""

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
    """The offsets at which a clean stop has closed a log."""

    recovery_point: int
    """The checkpointed recovery point: the log's end, or the offset before it."""
    snapshot: int | None
    """The offset of the newest producer snapshot, which is the log's end; None without a snapshot."""


class Recovered(NamedTuple):
    """The report of opening a log after an unclean stop."""

    segments: int
    """Number of scanned segments."""
    bytes_scanned: int
    cut: Cut | None
    rebuilt: tuple[str, ...]
    """Segments whose missing or damaged indexes were rebuilt, although they needed no recovery."""
    doubt: str | None = None
    """The difference from the log's end at the clean stop, which caused a recovery. None without a difference, or after
    an unclean stop."""


class LoadedLog(NamedTuple):
    """The parts of an opened or new log."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: LeaderEpochCache
    producer_state: ProducerState
    recovered: Recovered
    clean: bool
    """True if the log was as a clean stop left it."""
    is_new: bool = False
    """True if the folder was empty."""
