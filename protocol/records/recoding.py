"""Compresses records piece by piece, for a caller that does not have all records at once."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from protocol.records.compression import GZIP_CONTAINER, Compression
from protocol.records.deflating import ZSTD_LEVEL


class Recoder:
    """Compresses pieces of encoded records. `end` returns the last compressed bytes."""

    def __init__(self, codec: Compression, level: int | None, *, magic: int = 2) -> None:
        """Takes `level` and `magic` as `compress` does."""
        self.write: Callable[[bytes], bytes]
        self.end: Callable[[], bytes]
        self.write, self.end = _STREAMS[codec](level, magic)


_Stream = tuple[Callable[[bytes], bytes], Callable[[], bytes]]


def _plain(_level: int | None, _magic: int) -> _Stream:
    return bytes, bytes


def _gzip(level: int | None, _magic: int) -> _Stream:
    stream = zlib.compressobj(-1 if level is None else level, wbits=GZIP_CONTAINER)
    return stream.compress, stream.flush


def _snappy(_level: int | None, _magic: int) -> _Stream:
    from protocol.records import snappy

    begun = False

    def write(piece: bytes) -> bytes:
        nonlocal begun
        stream = snappy.compress(piece)  # later pieces leave out the header, and continue the blocks
        begun, header = True, snappy.HEADER_BYTES if begun else 0
        return stream[header:]

    return write, bytes


def _lz4(level: int | None, magic: int) -> _Stream:
    from protocol.records import lz4

    return lz4.stream(level, broken_checksum=magic == 0)


def _zstd(level: int | None, _magic: int) -> _Stream:
    import zstandard

    stream = zstandard.ZstdCompressor(level=ZSTD_LEVEL if level is None else level).compressobj()
    return stream.compress, stream.flush


_STREAMS: dict[Compression, Callable[[int | None, int], _Stream]] = {
    Compression.NONE: _plain,
    Compression.GZIP: _gzip,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
