"""The jitter of segment.ms, which makes the segments of many partitions roll at different times. Kafka class LogSegment
(rollJitterMs).
"""

from __future__ import annotations

import os
from zlib import crc32

from storage.config import LogConfig


def jitter_ms(directory: str, base_offset: int, config: LogConfig) -> int:
    """Returns the milliseconds to subtract from segment.ms, up to segment.jitter.ms. They differ between partitions and
    segments, but are the same in every run."""
    limit = min(config.segment_jitter_ms, config.segment_ms)
    if not limit:
        return 0
    return crc32(f"{os.path.basename(directory)}/{base_offset}".encode()) % limit
