"""Snappy as Kafka's clients write it: xerial's framing (Java and most other clients), or a raw block (librdkafka).

xerial's stream (org.xerial.snappy.SnappyOutputStream) is a 16-byte header and blocks of at most 32 KiB, each after its
compressed length as an int32; streams may follow each other. Like the Java client, this module reads any data without
the header as a raw block, and writes the framing, which every client reads.
"""

from __future__ import annotations

from collections.abc import Iterator

import cramjam

from protocol.records.compression import Bytes, Stream, TooLarge, damaged

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version, and the oldest version that reads it
_BLOCK_SIZE = 32 * 1024

# The densest element of the format is a copy: three bytes that inflate to 64. A block with a larger claimed size is
# invalid, and must be rejected before its buffer is allocated.
_MAX_RATIO = 22

_SIZE_BYTES = 4
_MAX_SIZE = 1 << 62


def compress(data: Bytes, _level: int | None, _magic: int) -> bytes:
    """Returns `data` compressed, in xerial's framing."""
    return _HEADER + _blocks(data)


def stream(_level: int | None, _magic: int) -> Stream:
    """Returns the functions that write xerial's framing piece by piece."""
    header = [_HEADER]
    return Stream(lambda piece: (header.pop() if header else b"") + _blocks(piece), bytes)


def _blocks(data: Bytes) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = []
    for start in range(0, len(view), _BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(data: Bytes, max_size: int, _magic: int) -> bytes:
    """Returns the content of a xerial stream or a raw block. Raises KafkaError(CORRUPT_MESSAGE)."""
    return b"".join(_inflated(data, max_size))


def pieces(data: Bytes, _magic: int) -> Iterator[bytes]:
    """Yields the content block by block. Raises KafkaError(CORRUPT_MESSAGE)."""
    return _inflated(data, _MAX_SIZE)


def _inflated(data: Bytes, max_size: int) -> Iterator[bytes]:
    view = memoryview(data)
    if view[: len(_MAGIC)] != _MAGIC:
        if len(view):
            yield _block(view, max_size)
        return
    if len(view) < len(_HEADER):
        raise damaged("snappy", "its header is truncated")
    at, left = len(_HEADER), max_size
    while len(view) - at >= _SIZE_BYTES:
        if view[at : at + len(_MAGIC)] == _MAGIC:
            at += len(_HEADER)
            continue
        size = int.from_bytes(view[at : at + _SIZE_BYTES], "big")
        at += _SIZE_BYTES
        if size > len(view) - at:
            raise damaged("snappy", f"a block of {size} bytes, but only {len(view) - at} are left")
        try:
            block = _block(view[at : at + size], left)
        except TooLarge:
            raise TooLarge(max_size) from None
        yield block
        left -= len(block)
        at += size


def _block(block: memoryview, max_size: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _MAX_RATIO * len(block):
            raise damaged("snappy", f"{len(block)} bytes announce {size} uncompressed bytes, which is impossible")
        if size > max_size:
            raise TooLarge(max_size)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise damaged("snappy", str(error)) from None
