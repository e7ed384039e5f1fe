"""The codecs of record batches and of compressed messages, as Kafka's clients write them.

deflating.py compresses, inflating.py gives back the content. Each codec's library is loaded when it is first used; a
broker whose topics use none of them never pays for it.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TypeAlias

from protocol.errors import ErrorCode, KafkaError

Bytes: TypeAlias = bytes | bytearray | memoryview

GZIP_CONTAINER = 16 + zlib.MAX_WBITS


class Compression(IntEnum):
    """A codec, as the low three bits of a batch's attributes name it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TooLarge(KafkaError):
    """The data would inflate to more than the caller allows."""

    def __init__(self, max_size: int) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"compressed records inflate to more than {max_size} bytes")


def damaged(codec: str, reason: str) -> KafkaError:
    """Returns the error for compressed bytes that are not what their codec's format asks for."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {reason}")
