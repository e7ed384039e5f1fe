"""The codecs of record batches and of compressed messages, as Kafka's clients write them.

Inflating is bounded: nothing takes more memory than `max_size`, whatever the compressed bytes claim. Each codec's
library is loaded when it is first used; a broker whose topics use none of them never pays for it.
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


def compress(codec: Compression, data: Bytes, level: int | None = None, *, magic: int = 2) -> bytes:
    """`data` compressed. `level` is compression.gzip.level, .lz4.level or .zstd.level; None is Kafka's default.

    `magic` is the format of the records around it: LZ4 in magic 0 has a header checksum that is wrong (KAFKA-3160).
    """
    if codec is Compression.GZIP:
        return zlib.compress(data, -1 if level is None else level, wbits=GZIP_CONTAINER)
    if codec is Compression.SNAPPY:
        from protocol.records import snappy

        return snappy.compress(data)
    if codec is Compression.LZ4:
        from protocol.records import lz4

        return lz4.compress(data, level, broken_checksum=magic == 0)
    if codec is Compression.ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=ZSTD_LEVEL if level is None else level).compress(data)
    return bytes(data)


ZSTD_LEVEL = 3


def decompress(codec: Compression, data: Bytes, *, max_size: int, magic: int = 2) -> bytes:
    """`data` inflated, at most `max_size` bytes of it.

    Raises KafkaError(CORRUPT_MESSAGE) when the bytes are not of the codec, are cut, have others after them (where the
    codec's readers do not ignore those) or inflate to more than `max_size` (then as TooLarge).
    """
    if codec is Compression.GZIP:
        return _gunzip(data, max_size)
    if codec is Compression.SNAPPY:
        from protocol.records import snappy

        return snappy.decompress(data, max_size)
    if codec is Compression.LZ4:
        from protocol.records import lz4

        return lz4.decompress(data, max_size, any_checksum=magic == 0)
    if codec is Compression.ZSTD:
        return _unzstd(data, max_size)
    if len(data) > max_size:
        raise TooLarge(max_size)
    return bytes(data)


def _gunzip(data: Bytes, max_size: int) -> bytes:
    inflater = zlib.decompressobj(GZIP_CONTAINER)
    try:
        inflated = inflater.decompress(data, max_size + 1)
    except zlib.error as error:
        raise damaged("gzip", str(error)) from None
    if len(inflated) > max_size:
        raise TooLarge(max_size)
    if not inflater.eof:
        raise damaged("gzip", "it is cut")
    return _joined(Compression.GZIP, data, max_size) if inflater.unused_data else inflated


def _unzstd(data: Bytes, max_size: int) -> bytes:
    import zstandard

    try:
        if zstandard.frame_content_size(data) > max_size:
            raise TooLarge(max_size)
        # The buffer of max_size is address space until it is written to, and shrinks to fit.
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=max_size, allow_extra_data=False)
    except zstandard.ZstdError:
        return _joined(Compression.ZSTD, data, max_size)


def _joined(codec: Compression, data: Bytes, max_size: int) -> bytes:
    """Of several members or frames, or damaged ones."""
    from protocol.records.inflating import pieces

    inflated: list[bytes] = []
    left = max_size
    for piece in pieces(codec, data):
        inflated.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooLarge(max_size)
    return b"".join(inflated)


def damaged(codec: str, reason: str) -> KafkaError:
    """Returns the error for compressed bytes that are not what their codec's format asks for."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the {codec} data is damaged: {reason}")
