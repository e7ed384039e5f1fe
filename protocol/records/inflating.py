"""Inflates compressed records: in one piece, or piece by piece, so that the caller needs the memory of a single piece.
The caller limits the memory, whatever size the compressed bytes claim.

A stream is complete if Apache Kafka's clients and broker accept it. Gzip: consecutive members; other bytes after them
are ignored. LZ4: a frame of independent blocks; bytes after it are ignored. Zstd: whole frames, and no bytes after
them. Snappy: xerial's blocks, or a raw block. Source: java.util.zip.GZIPInputStream,
org.apache.kafka.common.compress.Lz4BlockInputStream, com.github.luben.zstd.ZstdInputStreamNoFinalizer,
org.xerial.snappy.SnappyInputStream.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from protocol.records.compression import GZIP_CONTAINER, Bytes, Compression, TooLarge, damaged

if TYPE_CHECKING:
    import zstandard

PIECE_BYTES = 256 * 1024
"""Bytes that are inflated in a step: less than half a millisecond of work for the slowest codec, and larger than most
batches."""

INPUT_BYTES = 16 * 1024
"""Input bytes of a decompressor in a step. The library copies unused input at each step."""

_GZIP_START = b"\x1f\x8b\x08"
_SMALLEST_MEMBER = 18

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_SIZES_OF_CONTENT_SIZE = (0, 2, 4, 8)
_ZSTD_SIZES_OF_DICTIONARY_ID = (0, 1, 2, 4)
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2
_ZSTD_MAX_WINDOW = 1 << 27
"""Largest window that Java's decompressor accepts, that of level 22. Only the part that the data needs takes memory."""


def decompress(codec: Compression, data: Bytes, *, max_size: int, magic: int = 2) -> bytes:
    """Returns `data` inflated.

    Raises KafkaError(CORRUPT_MESSAGE) if the bytes are malformed or incomplete, or if other bytes follow them (unless
    the codec's readers ignore those), and TooLarge if they inflate to more than `max_size` bytes.
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
        # The buffer of max_size takes no memory until it is written, and shrinks to fit.
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=max_size, allow_extra_data=False)
    except zstandard.ZstdError:
        return _joined(Compression.ZSTD, data, max_size)


def _joined(codec: Compression, data: Bytes, max_size: int) -> bytes:
    """Inflates several members or frames, or damaged data."""
    inflated: list[bytes] = []
    left = max_size
    for piece in pieces(codec, data):
        inflated.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooLarge(max_size)
    return b"".join(inflated)


def pieces(codec: Compression, data: Bytes, *, magic: int = 2) -> Iterator[bytes]:
    """Yields `data` inflated in pieces, which may be empty. Raises KafkaError(CORRUPT_MESSAGE) for damaged data."""
    if codec is Compression.GZIP:
        return _gzip_pieces(memoryview(data))
    if codec is Compression.SNAPPY:
        from protocol.records import snappy

        return snappy.blocks(data)
    if codec is Compression.LZ4:
        from protocol.records import lz4

        return lz4.pieces(data, PIECE_BYTES, INPUT_BYTES, any_checksum=magic == 0)
    if codec is Compression.ZSTD:
        return _zstd_pieces(bytes(data))
    return (bytes(data[at : at + PIECE_BYTES]) for at in range(0, len(data), PIECE_BYTES))


def _gzip_pieces(data: memoryview) -> Iterator[bytes]:
    at, size = 0, len(data)
    while True:
        inflater = zlib.decompressobj(GZIP_CONTAINER)
        while not inflater.eof:
            given = inflater.unconsumed_tail
            if not given:
                given = bytes(data[at : at + INPUT_BYTES])
                at += len(given)
            try:
                piece = inflater.decompress(given, PIECE_BYTES)
            except zlib.error as error:
                raise damaged("gzip", str(error)) from None
            if not piece and not given:
                raise damaged("gzip", "it is cut")
            yield piece
        at -= len(inflater.unused_data)
        if size - at <= _SMALLEST_MEMBER or data[at : at + len(_GZIP_START)] != _GZIP_START:
            return


def _zstd_pieces(data: bytes) -> Iterator[bytes]:
    import zstandard

    check_zstd_frames(data)
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW).stream_reader(data, read_across_frames=True)
    while True:
        try:
            piece = _read(reader)
        except zstandard.ZstdError as error:
            raise damaged("zstd", str(error)) from None
        if not piece:
            return
        yield piece


def _read(reader: zstandard.ZstdDecompressionReader) -> bytes:
    return reader.read(PIECE_BYTES)


def check_zstd_frames(data: bytes) -> None:
    """Checks by the headers that the data consists of whole frames, because the library's reader treats an incomplete
    frame as the end. Raises KafkaError(CORRUPT_MESSAGE). Source: RFC 8878."""
    at, size = 0, len(data)
    try:
        while at < size:
            number = int.from_bytes(data[at : at + 4], "little")
            if number & ~0xF == _ZSTD_SKIPPABLE:
                at += 8 + _little(data, at + 4, 4)
            elif number == _ZSTD_MAGIC:
                at = _zstd_frame_end(data, at + 4)
            else:
                raise damaged("zstd", f"no frame begins at byte {at}")
    except IndexError:
        raise damaged("zstd", "it is cut") from None
    if at > size:
        raise damaged("zstd", "it is cut")


def _zstd_frame_end(data: bytes, at: int) -> int:
    """Returns the end of the frame whose descriptor is at `at`. Raises IndexError past the data's end."""
    flags = data[at]
    single_segment = flags >> 5 & 1
    content_size = _ZSTD_SIZES_OF_CONTENT_SIZE[flags >> 6] or single_segment
    at += 1 + (1 - single_segment) + content_size + _ZSTD_SIZES_OF_DICTIONARY_ID[flags & 3]
    while True:
        block = _little(data, at, 3)
        kind, length = block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _ZSTD_RLE else length)
        if block & 1:
            return at + 4 * (flags >> 2 & 1)


def _little(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "little")
