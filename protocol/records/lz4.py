"""LZ4 frames as Kafka's Java client writes them: independent blocks of 64 KiB, no content size, no content checksum.

In messages of magic 0 the header checksum also covers the frame's magic number, which the LZ4 format doesn't allow
(KAFKA-3160). Old clients write this wrong checksum and reject the right one, so the broker writes it too and does not
check it.
Source: org.apache.kafka.common.compress.Lz4BlockOutputStream; the LZ4 frame format 1.6.
"""

from __future__ import annotations

from collections.abc import Iterator

import lz4.frame

from protocol.records.compression import INPUT_BYTES, PIECE_BYTES, Bytes, Stream, damaged, joined

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_FRAME_MAGIC_SIZE = len(_FRAME_MAGIC)
_INDEPENDENT_BLOCKS = 0x20
_RESERVED_OR_DICTIONARY = 0x03
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY_ID = 0x01

_USUAL_FLAGS = {0x60, 0x64}
"""The flags that Kafka's clients write: independent blocks, with or without a checksum of the content."""
_USUAL_HEADER_SIZE = _FRAME_MAGIC_SIZE + 3
_BLOCK_SIZES = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}
"""Largest inflated size of a block, by the frame's second descriptor byte."""
_BLOCK_LENGTH = 0x7FFFFFFF

# Kafka's default level, 9, selects the fast compressor, and any other level the high compressor. In liblz4's frame API
# level 0 is the fast compressor, and the high compressor begins at level 3.
_KAFKA_DEFAULT_LEVEL = 9
_FAST = 0
_HIGH = range(3, 13)

# An LZ4 byte inflates to at most 255 bytes; larger steps would only need larger buffers.
_MAX_RATIO = 255
_MAX_STEP = 4 * 1024 * 1024
_MIN_STEP = 64 * 1024


def compress(data: Bytes, level: int | None, magic: int) -> bytes:
    """Returns `data` as one frame."""
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=_liblz4_level(level),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return _broken(frame) if magic == 0 else frame


def _broken(frame: bytes) -> bytes:
    end = _descriptor_end(frame)
    return frame[:end] + _header_checksum(frame[:end]) + frame[end + 1 :]


def stream(level: int | None, magic: int) -> Stream:
    """Returns the functions that write a frame piece by piece."""
    compressor = lz4.frame.LZ4FrameCompressor(
        compression_level=_liblz4_level(level), block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False
    )
    header: bytes = compressor.begin()
    begin = [_broken(header) if magic == 0 else header]

    def write(piece: bytes) -> bytes:
        compressed: bytes = compressor.compress(piece)
        return begin.pop() + compressed if begin else compressed

    def end() -> bytes:
        last: bytes = compressor.flush()
        return begin.pop() + last if begin else last

    return Stream(write, end)


def _room(data: Bytes, max_size: int) -> int:
    """Returns the largest inflated size of a frame in the clients' usual format, by its block headers; 0 for any other
    frame, and for a frame that may inflate to more than `max_size`."""
    size = len(data)
    if (
        size < _USUAL_HEADER_SIZE
        or data[_FRAME_MAGIC_SIZE] not in _USUAL_FLAGS
        or data[:_FRAME_MAGIC_SIZE] != _FRAME_MAGIC
    ):
        return 0
    block_size = _BLOCK_SIZES.get(data[_FRAME_MAGIC_SIZE + 1])
    if block_size is None:
        return 0
    at, room = _USUAL_HEADER_SIZE, 0
    while at + 4 <= size and room <= max_size:
        length = int.from_bytes(data[at : at + 4], "little") & _BLOCK_LENGTH
        if not length:
            return room
        room += block_size
        at += 4 + length
    return 0


def decompress(data: Bytes, max_size: int, magic: int) -> bytes:
    """Returns the content of one frame, and ignores bytes after it. Raises KafkaError(CORRUPT_MESSAGE).

    Inflates a usual frame in one call of the library, into a buffer that need not grow.
    """
    if magic and (room := _room(data, max_size)):
        return _inflated_into(data, room)
    step = min(_MAX_STEP, _MIN_STEP + _MAX_RATIO * len(data), max_size + 1)
    return joined(_pieces(data, step, len(data), magic), max_size)


def _inflated_into(data: Bytes, room: int) -> bytes:
    """Returns the content of a frame that inflates to at most `room` bytes."""
    inflater = lz4.frame.LZ4FrameDecompressor()
    try:
        content: bytes = inflater.decompress(data, max_length=room)
    except (RuntimeError, ValueError) as error:
        raise damaged("lz4", str(error)) from None
    if not inflater.eof:
        raise damaged("lz4", "it is cut")
    return content


def pieces(data: Bytes, magic: int) -> Iterator[bytes]:
    """Yields the content in pieces. Raises KafkaError(CORRUPT_MESSAGE)."""
    return _pieces(data, PIECE_BYTES, INPUT_BYTES, magic)


def _pieces(data: Bytes, step: int, input_step: int, magic: int) -> Iterator[bytes]:
    """Yields the content in pieces of at most `step` bytes, reading `input_step` bytes of `data` at a time."""
    if magic == 0:
        end = _descriptor_end(data)
        data = b"".join((data[:end], _header_checksum(data[_FRAME_MAGIC_SIZE:end]), data[end + 1 :]))
    inflater = lz4.frame.LZ4FrameDecompressor()
    at = 0
    while not inflater.eof:
        given = data[at : at + input_step] if inflater.needs_input else b""
        at += len(given)
        starved = inflater.needs_input and not given
        try:
            piece = inflater.decompress(given, max_length=step)
        except (RuntimeError, ValueError) as error:
            raise damaged("lz4", str(error)) from None
        if not piece and starved and not inflater.eof:
            raise damaged("lz4", "it is cut")
        yield piece


def check_descriptor(data: Bytes) -> None:
    """Raises KafkaError(CORRUPT_MESSAGE) if the frame uses features of LZ4 that Kafka's clients can't read."""
    if data[:_FRAME_MAGIC_SIZE] != _FRAME_MAGIC or len(data) <= _FRAME_MAGIC_SIZE:
        raise damaged("lz4", "no frame begins here")
    if data[_FRAME_MAGIC_SIZE] & _RESERVED_OR_DICTIONARY or not data[_FRAME_MAGIC_SIZE] & _INDEPENDENT_BLOCKS:
        raise damaged("lz4", "Kafka's clients read independent blocks, without a dictionary")


def _liblz4_level(level: int | None) -> int:
    if level is None or level == _KAFKA_DEFAULT_LEVEL:
        return _FAST
    return min(max(level, _HIGH.start), _HIGH.stop - 1)


def _descriptor_end(frame: Bytes) -> int:
    """Returns the end of the frame descriptor, where its checksum is. The descriptor has flags, block size, and two
    optional fields."""
    if len(frame) <= _FRAME_MAGIC_SIZE:
        raise damaged("lz4", "it is cut")
    flags = frame[_FRAME_MAGIC_SIZE]
    end = _FRAME_MAGIC_SIZE + 2 + 8 * bool(flags & _HAS_CONTENT_SIZE) + 4 * bool(flags & _HAS_DICTIONARY_ID)
    if len(frame) <= end:
        raise damaged("lz4", "it is cut")
    return end


def _header_checksum(descriptor: Bytes) -> bytes:
    return bytes((_xxh32(descriptor) >> 8 & 0xFF,))


def _xxh32(data: Bytes) -> int:
    """Returns the xxHash32, with seed 0, of fewer than 16 bytes. A frame descriptor is never longer."""
    assert len(data) < 16
    whole_words = len(data) & ~3
    state = 374761393 + len(data)
    for at in range(0, whole_words, 4):
        state = _rotate(state + int.from_bytes(data[at : at + 4], "little") * 3266489917, 17) * 668265263
    for byte in data[whole_words:]:
        state = _rotate(state + byte * 374761393, 11) * 2654435761
    state &= 0xFFFFFFFF
    state = (state ^ state >> 15) * 2246822519 & 0xFFFFFFFF
    state = (state ^ state >> 13) * 3266489917 & 0xFFFFFFFF
    return state ^ state >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
