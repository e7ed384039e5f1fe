"""Decides which of a log's oldest segments to delete: by time, by size, or because the log starts after them.

`Log.delete_segments` deletes them. Kafka class UnifiedLog (deleteOldSegments).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from storage.config import LogConfig
from storage.segment.segment import Segment


class Reason(Enum):
    """The reason to delete a segment."""

    LOG_START = "it ends before the log's start"
    SIZE = "the log is larger than retention.bytes"
    TIME = "its newest record is older than retention.ms"


class Deletable(NamedTuple):
    """A segment to delete, and the reason."""

    segment: Segment
    reason: Reason


def deletable(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[Deletable]:
    """Returns the oldest segments that may be deleted, each with its first reason.

    Never returns a segment that reaches beyond the high watermark, nor an empty active segment. A log that is only
    compacted loses only the segments below its start offset. Raises OSError, because an index may have to be read.
    """
    expired: list[Deletable] = []

    def take(reason: Reason, may_go: Callable[[Segment, int | None], bool]) -> None:
        """Moves the oldest remaining segments to the result, as long as the rule allows it."""
        for n in range(len(expired), len(segments)):
            segment = segments[n]
            following = segments[n + 1].base_offset if n + 1 < len(segments) else None
            end = log_end_offset if following is None else following
            is_empty_active = following is None and not segment.size_bytes
            if end > high_watermark or is_empty_active or not may_go(segment, following):
                return
            expired.append(Deletable(segment, reason))

    take(Reason.LOG_START, lambda segment, following: following is not None and following <= log_start_offset)
    if config.delete:
        if config.retention_bytes >= 0:
            excess = sum(segment.size_bytes for segment in segments[len(expired) :]) - config.retention_bytes
            take(Reason.SIZE, _fits_into(excess))
        if config.retention_ms >= 0:
            take(Reason.TIME, lambda segment, _: now_ms - segment.largest_timestamp() > config.retention_ms)
    return expired


def _fits_into(excess: int) -> Callable[[Segment, int | None], bool]:
    """Returns a rule to call with the segments in order: True while the excess covers all of them."""
    left = excess

    def fits(segment: Segment, _: int | None) -> bool:
        nonlocal left
        left -= segment.size_bytes
        return left >= 0

    return fits
