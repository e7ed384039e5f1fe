"""Records that are not compressed, with the functions of a codec."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.records.compression import PIECE_BYTES, Bytes, Stream, TooLarge


def compress(data: Bytes, _level: int | None, _magic: int) -> bytes:
    return bytes(data)


def stream(_level: int | None, _magic: int) -> Stream:
    return Stream(bytes, bytes)


def decompress(data: Bytes, max_size: int, _magic: int) -> bytes:
    """Returns the same bytes. Raises TooLarge."""
    if len(data) > max_size:
        raise TooLarge(max_size)
    return bytes(data)


def pieces(data: Bytes, _magic: int) -> Iterator[bytes]:
    return (bytes(data[at : at + PIECE_BYTES]) for at in range(0, len(data), PIECE_BYTES))
