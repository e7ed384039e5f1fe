"""The job of cleaning one log, and its results: plain values that can be sent to another process and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from storage.segment.txn_index import AbortedTxn


class LastRecord(NamedTuple):
    """The last data offset of an active producer (-1 if it has only written a marker), and its epoch."""

    data_offset: int
    epoch: int


class DirtySegment(NamedTuple):
    """A segment to clean, as it was when the job was created."""

    base_offset: int
    size_bytes: int
    modified_ms: int


class CleaningJob(NamedTuple):
    """The inputs for cleaning a log."""

    directory: str
    segments: tuple[DirtySegment, ...]
    """The log's segments before `end_offset`."""
    first_dirty_offset: int
    end_offset: int
    """The base offset of the first segment that may not be cleaned."""
    aborted: tuple[AbortedTxn, ...]
    producers: Mapping[int, LastRecord]
    now_ms: int
    map_bytes: int
    """The cleaner thread's share of log.cleaner.dedupe.buffer.size."""
    load_factor: float
    """log.cleaner.io.buffer.load.factor: the largest used share of the offset map."""
    delete_retention_ms: int
    largest_record: int
    """max.decompressed.message.bytes; a compressed record of more bytes ends the cleaning."""
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int


class CleanedSegment(NamedTuple):
    """A finished `.cleaned` segment, and the segments that it replaces."""

    base_offset: int
    size_bytes: int
    replaces: tuple[DirtySegment, ...]


class Cleaned(NamedTuple):
    """The summary of a cleaning: the offset up to which the log is clean, and counts."""

    end_offset: int
    bytes_read: int
    bytes_written: int
    records_kept: int
    invalid_records: int
    map_full: float
