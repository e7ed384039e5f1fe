"""Compresses records in one piece. (recoding.py compresses piece by piece.)"""

from __future__ import annotations

import zlib

from protocol.records.compression import GZIP_CONTAINER, Bytes, Compression

ZSTD_LEVEL = 3
"""Kafka's default of compression.zstd.level."""


def compress(codec: Compression, data: Bytes, level: int | None = None, *, magic: int = 2) -> bytes:
    """Returns `data` compressed. `level` is compression.gzip.level, .lz4.level or .zstd.level; None is Kafka's default.

    `magic` is the magic of the batch or message: LZ4 in magic 0 has a wrong header checksum (KAFKA-3160).
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
