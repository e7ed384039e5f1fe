"""Chooses the compacted logs to clean, and the offset to clean up to. Kafka class LogCleanerManager.

A log is clean up to `cleaned_to`, where the last cleaning ended. It is cleaned if the bytes after that offset are more
than `min.cleanable.dirty.ratio` of all cleanable bytes, or if a record has waited for longer than
`max.compaction.lag.ms`. Never cleaned: the active segment, segments past the first unstable offset, and segments with
records younger than `min.compaction.lag.ms`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from storage.cleaner.job import CleaningJob, DirtySegment, LastRecord
from storage.config import MAX_LONG
from storage.read import aborted_transactions
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from storage.log import Log


class Dirty(NamedTuple):
    """The part of a log that could be cleaned now."""

    log: Log
    first_dirty_offset: int
    end_offset: int
    """The base offset of the first segment that may not be cleaned."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """True if a record is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        """The dirty share of the cleanable bytes."""
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)

    @property
    def is_due(self) -> bool:
        """True if the log must be cleaned now."""
        if not self.dirty_bytes:
            return False
        return self.overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio


def filthiest(logs: Iterable[Log], now_ms: int) -> Dirty | None:
    """Returns the due log with the largest dirty ratio, or None. Raises OSError, because it may read timestamps."""
    due = [dirty for log in logs if (dirty := dirty_part(log, now_ms)) is not None and dirty.is_due]
    return max(due, key=lambda dirty: dirty.ratio, default=None)


def dirty_part(log: Log, now_ms: int) -> Dirty | None:
    """Returns the cleanable part of a log, or None. Raises OSError."""
    return _part_from(first_dirty_offset(log), log, now_ms)


def whole_part(log: Log, now_ms: int) -> Dirty | None:
    """Returns the cleanable part of a log as if all of it were dirty: without appends a log never gets dirty, but its
    tombstones expire. Raises OSError."""
    return _part_from(log.log_start_offset, log, now_ms)


def _part_from(start: int, log: Log, now_ms: int) -> Dirty | None:
    config, active = log.config, log.segments.active
    if not config.compact:
        return None
    if start >= active.base_offset:
        return None
    sealed = [segment for segment in log.segments.since(start) if segment is not active]
    end_offset = _end_offset(log, sealed, start, now_ms)
    if end_offset <= start:
        return None
    clean = sum(segment.size_bytes for segment in log.segments if segment.base_offset < start)
    dirty = sum(segment.size_bytes for segment in sealed if segment.base_offset < end_offset)
    return Dirty(log, start, end_offset, clean, dirty, _is_overdue(sealed, config.max_compaction_lag_ms, now_ms))


def first_dirty_offset(log: Log) -> int:
    """Returns the offset at which cleaning continues: the log's start without a checkpoint or with an invalid
    checkpoint."""
    cleaned_to = log.cleaned_to
    if cleaned_to is None or not log.log_start_offset <= cleaned_to <= log.log_end_offset:
        return log.log_start_offset
    return cleaned_to


def _end_offset(log: Log, sealed: list[Segment], start: int, now_ms: int) -> int:
    """Returns the base offset of the first segment that may not be cleaned. Segments are cleaned only as a whole."""
    unstable = log.first_unstable_offset
    stable = log.high_watermark if unstable is None else min(unstable, log.high_watermark)
    limit = min(stable, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    for segment in sealed if lag_ms > 0 else ():
        if segment.largest_timestamp() > now_ms - lag_ms:
            limit = min(limit, segment.base_offset)
            break
    return log.segments.containing(max(start, limit)).base_offset


def _is_overdue(sealed: list[Segment], max_lag_ms: int, now_ms: int) -> bool:
    """True if the first batch of a dirty segment is older than max.compaction.lag.ms."""
    if max_lag_ms >= MAX_LONG:
        return False
    return any(0 < segment.first_timestamp < now_ms - max(max_lag_ms, 0) for segment in sealed)


def job_of(dirty: Dirty, now_ms: int, *, map_bytes: int, load_factor: float) -> CleaningJob:
    """Returns the job of cleaning a log. Raises OSError.

    Before the cleaning, the whole log must be flushed and the recovery point written to the checkpoint. A record is
    removed because of later data: a later record of its key, the end of its transaction, its producer's next batch. A
    power loss must not take that data. Also, after the recovery point, recovery treats a segment whose end is missing
    as damaged, and compaction leaves such segments.
    """
    log, config = dirty.log, dirty.log.config
    segments = [segment for segment in log.segments if segment.base_offset < dirty.end_offset]
    return CleaningJob(
        directory=log.directory,
        segments=tuple(
            DirtySegment(segment.base_offset, segment.size_bytes, segment.modified_ms()) for segment in segments
        ),
        first_dirty_offset=dirty.first_dirty_offset,
        end_offset=dirty.end_offset,
        aborted=tuple(aborted_transactions(log.segments, segments[0].base_offset, dirty.end_offset)),
        producers=last_records(log),
        now_ms=now_ms,
        map_bytes=map_bytes,
        load_factor=load_factor,
        delete_retention_ms=config.delete_retention_ms,
        largest_record=config.max_decompressed_message_bytes,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
    )


def last_records(log: Log) -> dict[int, LastRecord]:
    """Returns the last record of each active producer (UnifiedLog.lastRecordsOfActiveProducers)."""
    entries = log.producer_state.entries()
    return {entry.producer_id: LastRecord(entry.last_batch.last_offset, entry.epoch) for entry in entries}
