"""Gzip: consecutive members; other bytes after them are ignored. Source: java.util.zip.GZIPInputStream."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from protocol.records.compression import INPUT_BYTES, PIECE_BYTES, Bytes, Stream, TooLarge, damaged, joined

_CONTAINER = 16 + zlib.MAX_WBITS
_START = b"\x1f\x8b\x08"
_SMALLEST_MEMBER = 18


def compress(data: Bytes, level: int | None, _magic: int) -> bytes:
    """Returns `data` as one member."""
    return zlib.compress(data, -1 if level is None else level, wbits=_CONTAINER)


def stream(level: int | None, _magic: int) -> Stream:
    """Returns the functions that write a member piece by piece."""
    compressor = zlib.compressobj(-1 if level is None else level, wbits=_CONTAINER)
    return Stream(compressor.compress, compressor.flush)


def decompress(data: Bytes, max_size: int, magic: int) -> bytes:
    """Returns the content of all members. Raises KafkaError(CORRUPT_MESSAGE), TooLarge."""
    inflater = zlib.decompressobj(_CONTAINER)
    try:
        inflated = inflater.decompress(data, max_size + 1)
    except zlib.error as error:
        raise damaged("gzip", str(error)) from None
    if len(inflated) > max_size:
        raise TooLarge(max_size)
    if not inflater.eof:
        raise damaged("gzip", "it is cut")
    return joined(pieces(data, magic), max_size) if inflater.unused_data else inflated


def pieces(data: Bytes, _magic: int) -> Iterator[bytes]:
    """Yields the content in pieces. Raises KafkaError(CORRUPT_MESSAGE)."""
    view, at, size = memoryview(data), 0, len(data)
    while True:
        inflater = zlib.decompressobj(_CONTAINER)
        while not inflater.eof:
            given = inflater.unconsumed_tail
            if not given:
                given = bytes(view[at : at + INPUT_BYTES])
                at += len(given)
            try:
                piece = inflater.decompress(given, PIECE_BYTES)
            except zlib.error as error:
                raise damaged("gzip", str(error)) from None
            if not piece and not given:
                raise damaged("gzip", "it is cut")
            yield piece
        at -= len(inflater.unused_data)
        if size - at <= _SMALLEST_MEMBER or view[at : at + len(_START)] != _START:
            return
