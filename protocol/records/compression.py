"""The codecs of record batches and of compressed messages."""

from __future__ import annotations

from enum import IntEnum


class Compression(IntEnum):
    """A codec, as the low three bits of a batch's attributes name it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
