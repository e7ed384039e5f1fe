"""What a log's world keeps between its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.compression import Compression
from storage.cleaner_job import Cleaned, CleanedSegment
from storage.log import Log

POLICIES = (("delete",), ("compact",), ("compact", "delete"), ("compact",))
CODECS = (Compression.NONE, Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4)


class Cleaning(NamedTuple):
    """A cleaner at work, between two of its segments."""

    log: Log
    steps: Iterator[CleanedSegment | Cleaned]
    end_offset: int
    truncations: int


class Held(NamedTuple):
    """What a consumer has been given, and what it was then."""

    view: memoryview
    content: bytes
