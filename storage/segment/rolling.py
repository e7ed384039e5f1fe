"""Decides when a log starts a new segment. Kafka classes LogSegment and RollParams."""

from __future__ import annotations

from storage.config import LogConfig
from storage.segment.index import MAX_RELATIVE_OFFSET
from storage.segment.segment import Segment


def should_roll(
    segment: Segment, size_bytes: int, max_timestamp: int, last_offset: int, config: LogConfig, now_ms: int
) -> bool:
    """True if an append needs a new segment: no space by size, offsets or index, or the first batch is too old.

    The age is the time from the first batch's timestamp to the new batch's. If the first batch has no timestamp, it is
    the time since the segment's creation.
    """
    size = segment.size_bytes
    if size > config.segment_bytes - size_bytes or segment.index_full:
        return True
    if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if not size:
        return False
    first = segment.first_timestamp
    age_ms = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return age_ms > config.max_segment_ms - segment.roll_jitter_ms
