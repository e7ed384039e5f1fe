"""The codecs of record batches and of compressed messages.

deflating.py compresses, inflating.py decompresses. Each codec's library is imported at its first use, so that a broker
without compressed topics imports none.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TypeAlias

from protocol.errors import ErrorCode, KafkaError

Bytes: TypeAlias = bytes | bytearray | memoryview

GZIP_CONTAINER = 16 + zlib.MAX_WBITS


class Compression(IntEnum):
    """A codec, by its number in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TooLarge(KafkaError):
    """Compressed data that would inflate to more than the caller's limit."""

    def __init__(self, max_size: int) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"compressed records inflate to more than {max_size} bytes")


def damaged(codec: str, reason: str) -> KafkaError:
    """Returns the error for malformed compressed bytes."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {reason}")
