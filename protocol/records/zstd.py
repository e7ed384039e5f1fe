"""Zstd: whole frames, and no bytes after them. Source: com.github.luben.zstd.ZstdInputStreamNoFinalizer; RFC 8878."""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

from protocol.records.compression import PIECE_BYTES, Bytes, Stream, TooLarge, damaged, joined

_LEVEL = 3
"""Kafka's default of compression.zstd.level."""

_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_SIZES_OF_CONTENT_SIZE = (0, 2, 4, 8)
_SIZES_OF_DICTIONARY_ID = (0, 1, 2, 4)
_RAW, _RLE, _COMPRESSED = 0, 1, 2
_MAX_WINDOW = 1 << 27
"""Largest window that Java's decompressor accepts, the window of level 22. Memory is used only for the part that the
data needs."""


def compress(data: Bytes, level: int | None, _magic: int) -> bytes:
    """Returns `data` as one frame."""
    return _compressor(level).compress(data)


def stream(level: int | None, _magic: int) -> Stream:
    """Returns the functions that write a frame piece by piece."""
    compressor = _compressor(level).compressobj()
    return Stream(compressor.compress, compressor.flush)


def _compressor(level: int | None) -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=_LEVEL if level is None else level)


def decompress(data: Bytes, max_size: int, magic: int) -> bytes:
    """Returns the content of all frames. Raises KafkaError(CORRUPT_MESSAGE), TooLarge."""
    try:
        if zstandard.frame_content_size(data) > max_size:
            raise TooLarge(max_size)
        # The buffer of max_size takes no memory until it is written, and shrinks to fit.
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=max_size, allow_extra_data=False)
    except zstandard.ZstdError:
        return joined(pieces(data, magic), max_size)


def pieces(data: Bytes, _magic: int) -> Iterator[bytes]:
    """Yields the content in pieces. Raises KafkaError(CORRUPT_MESSAGE)."""
    frames = bytes(data)
    _check_frames(frames)
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(frames, read_across_frames=True)
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


def _check_frames(data: bytes) -> None:
    """Checks by the headers that the data consists of whole frames, because the library's reader treats an incomplete
    frame as the end. Raises KafkaError(CORRUPT_MESSAGE)."""
    at, size = 0, len(data)
    try:
        while at < size:
            number = int.from_bytes(data[at : at + 4], "little")
            if number & ~0xF == _SKIPPABLE:
                at += 8 + _little(data, at + 4, 4)
            elif number == _MAGIC:
                at = _frame_end(data, at + 4)
            else:
                raise damaged("zstd", f"no frame begins at byte {at}")
    except IndexError:
        raise damaged("zstd", "it is cut") from None
    if at > size:
        raise damaged("zstd", "it is cut")


def _frame_end(data: bytes, at: int) -> int:
    """Returns the end of the frame whose descriptor is at `at`. Raises IndexError past the data's end."""
    flags = data[at]
    single_segment = flags >> 5 & 1
    content_size = _SIZES_OF_CONTENT_SIZE[flags >> 6] or single_segment
    at += 1 + (1 - single_segment) + content_size + _SIZES_OF_DICTIONARY_ID[flags & 3]
    while True:
        block = _little(data, at, 3)
        kind, length = block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE else length)
        if block & 1:
            return at + 4 * (flags >> 2 & 1)


def _little(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "little")
