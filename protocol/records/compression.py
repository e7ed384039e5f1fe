"""The parts that all codecs of record batches and compressed messages share. `codecs.py` has the functions to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from protocol.errors import ErrorCode, KafkaError

Bytes: TypeAlias = bytes | bytearray | memoryview

PIECE_BYTES = 256 * 1024
"""Bytes that are inflated in a step: less than half a millisecond of work for the slowest codec, and larger than most
batches."""

INPUT_BYTES = 16 * 1024
"""Input bytes of a decompressor in a step. The library copies unused input at each step."""


class Compression(IntEnum):
    """A codec, by its number in the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Stream(NamedTuple):
    """The functions that compress pieces of records, for a caller that does not have all records at once."""

    write: Callable[[bytes], bytes]
    end: Callable[[], bytes]
    """Returns the last compressed bytes."""


class TooLarge(KafkaError):
    """Compressed data that would inflate to more than the caller's limit."""

    def __init__(self, max_size: int) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"compressed records inflate to more than {max_size} bytes")


def damaged(codec: str, reason: str) -> KafkaError:
    """Returns the error for malformed compressed bytes."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {reason}")


def joined(pieces: Iterable[bytes], max_size: int) -> bytes:
    """Returns inflated pieces together. Raises TooLarge if they are longer than `max_size` bytes."""
    inflated: list[bytes] = []
    left = max_size
    for piece in pieces:
        inflated.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooLarge(max_size)
    return inflated[0] if len(inflated) == 1 else b"".join(inflated)
