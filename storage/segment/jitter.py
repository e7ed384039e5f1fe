"""How much earlier than segment.ms a segment ends, so that those of many partitions do not end together. Kafka class
LogSegment (rollJitterMs)."""

from __future__ import annotations

import os

from storage.config import LogConfig


def jitter_ms(directory: str, base_offset: int, config: LogConfig) -> int:
    """Returns the milliseconds that segment.jitter.ms takes off segment.ms: spread over partitions and segments, but
    the same at every run."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if not limit:
        return 0
    from zlib import crc32

    return crc32(f"{os.path.basename(directory)}/{base_offset}".encode()) % limit
