"""The work of cleaning one log, and what comes of it: plain values, which go to another process and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from storage.segment.txn_index import AbortedTxn


class LastRecord(NamedTuple):
    """The end of what an active producer has written: its last data, -1 when there is only a marker, and its epoch."""

    data_offset: int
    epoch: int


class DirtySegment(NamedTuple):
    """A segment to be cleaned, as it was when the cleaning was decided on."""

    base_offset: int
    size_bytes: int
    modified_ms: int


class CleaningJob(NamedTuple):
    """All that it takes to clean a log."""

    directory: str
    segments: tuple[DirtySegment, ...]
    """From the log's first segment to the first that may not be cleaned, exclusively."""
    first_dirty_offset: int
    end_offset: int
    """Where the segment begins that may not be cleaned."""
    aborted: tuple[AbortedTxn, ...]
    producers: Mapping[int, LastRecord]
    now_ms: int
    map_bytes: int
    """log.cleaner.dedupe.buffer.size, this cleaner's share of it."""
    load_factor: float
    """log.cleaner.io.buffer.load.factor: how full the map may get."""
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int


class CleanedSegment(NamedTuple):
    """A finished `.cleaned` segment, and the segments that it stands for."""

    base_offset: int
    size_bytes: int
    replaces: tuple[DirtySegment, ...]


class Cleaned(NamedTuple):
    """The end of a cleaning: up to where the log is clean now, and what it took."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_kept: int
    invalid_records: int
    map_full: float
