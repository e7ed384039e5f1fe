"""Compresses and inflates records: in one piece, or piece by piece, so that the caller needs the memory of a single
piece. The caller limits the memory, whatever size the compressed bytes claim.

Each codec has a module. It is imported, with its library, at its first use: a broker without compressed topics imports
none. A compressed stream is complete if Apache Kafka's clients and broker accept it.

`magic` is the magic of the batch or message: LZ4 in magic 0 has a wrong header checksum (KAFKA-3160).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from protocol.lazy import lazy
from protocol.records import gzip, uncompressed
from protocol.records.compression import Bytes, Compression, Stream

if TYPE_CHECKING:
    from protocol.records import lz4, snappy, zstd
else:  # with the first compressed records
    lz4 = lazy("protocol.records.lz4")
    snappy = lazy("protocol.records.snappy")
    zstd = lazy("protocol.records.zstd")


class Codec(Protocol):
    """The module of a codec."""

    def compress(self, data: Bytes, level: int | None, magic: int, /) -> bytes: ...

    def stream(self, level: int | None, magic: int, /) -> Stream: ...

    def decompress(self, data: Bytes, max_size: int, magic: int, /) -> bytes: ...

    def pieces(self, data: Bytes, magic: int, /) -> Iterator[bytes]: ...


CODECS: Final[Mapping[Compression, Codec]] = {
    Compression.NONE: uncompressed,
    Compression.GZIP: gzip,
    Compression.SNAPPY: snappy,
    Compression.LZ4: lz4,
    Compression.ZSTD: zstd,
}


def compress(codec: Compression, data: Bytes, level: int | None = None, *, magic: int = 2) -> bytes:
    """Returns `data` compressed. `level` is compression.gzip.level, .lz4.level or .zstd.level; None is Kafka's
    default."""
    return CODECS[codec].compress(data, level, magic)


def stream(codec: Compression, level: int | None, *, magic: int = 2) -> Stream:
    """Returns the functions that compress records piece by piece, with the level of `compress`."""
    return CODECS[codec].stream(level, magic)


def decompress(codec: Compression, data: Bytes, *, max_size: int, magic: int = 2) -> bytes:
    """Returns `data` inflated.

    Raises KafkaError(CORRUPT_MESSAGE) if the bytes are malformed or incomplete, or if other bytes follow them (unless
    the codec's readers ignore those), and TooLarge if they inflate to more than `max_size` bytes.
    """
    return CODECS[codec].decompress(data, max_size, magic)


def pieces(codec: Compression, data: Bytes, *, magic: int = 2) -> Iterator[bytes]:
    """Yields `data` inflated in pieces, which may be empty. Raises KafkaError(CORRUPT_MESSAGE) for damaged data."""
    return CODECS[codec].pieces(data, magic)


def check_descriptor(codec: int, data: Bytes) -> None:
    """Raises KafkaError(CORRUPT_MESSAGE) for an LZ4 frame that Kafka's consumers can't read."""
    if codec == Compression.LZ4:
        lz4.check_descriptor(data)
