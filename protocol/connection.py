"""One connection's bytes, sans-IO: what was read becomes frames, an answer becomes buffers to write.

Most frames arrive whole and are views of the one buffer that all connections of a listener read into; only a frame that
a read cut in two gets a buffer of its own, of exactly its size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from protocol.errors import ProtocolError
from protocol.types import Buffer

SIZE: Final = struct.Struct(">i")
SIZE_BYTES: Final = SIZE.size
RESPONSE_HEAD: Final = struct.Struct(">ii")
FLEXIBLE_RESPONSE_HEAD: Final = struct.Struct(">iix")
"""Size, correlation id and, in flexible versions, an empty tag section."""

FIRST_BYTES: Final = 1024 * 1024
"""Room that a cut frame gets before its bytes are there; as they come it is doubled. Four bytes announce a hundred
megabytes, and need not be followed by any; most requests are smaller than this (a Java producer's max.request.size)."""

JOIN_LIMIT_BYTES: Final = 16 * 1024
"""Answers up to this size become one buffer: one copy is cheaper than a vectored write of many small pieces."""


class FrameReader:
    """Cuts a stream of bytes into size-prefixed frames (protocol guide, "Protocol Basics")."""

    __slots__ = ("_filled", "_partial", "_prefix", "_size", "error", "limit_name", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int, limit_name: str = "socket.request.max.bytes") -> None:
        self.max_frame_bytes = max_frame_bytes
        self.limit_name = limit_name
        self.error: ProtocolError | None = None
        """Set by a size that cannot be: frames before it are good, nothing comes after it."""
        self._partial: memoryview | None = None
        self._filled = 0
        self._size = 0
        self._prefix = False

    @property
    def held_bytes(self) -> int:
        """The room that a frame has which is not whole yet."""
        return 0 if self._partial is None else len(self._partial)

    def drop(self) -> None:
        """Nothing more comes: what is there of a frame goes."""
        self._partial = None
        self._prefix = False

    def target(self) -> memoryview | None:
        """Where the next bytes belong, then say that they are there by `filled`; None: anywhere, then `cut` them."""
        return None if self._partial is None else self._partial[self._filled :]

    def cut(self, chunk: memoryview) -> list[memoryview]:
        """The whole frames in what was read, without their sizes, as views of it; what is left over is copied."""
        position, end = 0, len(chunk)
        if end >= SIZE_BYTES and SIZE.unpack_from(chunk)[0] == end - SIZE_BYTES <= self.max_frame_bytes:
            return [chunk[SIZE_BYTES:]]  # one that is whole, as most reads bring
        frames: list[memoryview] = []
        while end - position >= SIZE_BYTES:
            size = SIZE.unpack_from(chunk, position)[0]
            start = position + SIZE_BYTES
            position = start + size
            if not 0 <= size <= self.max_frame_bytes:
                self.error = self._impossible(size)
                return frames
            if position > end:
                self._begin(size, chunk[start:])
                return frames
            frames.append(chunk[start:position])
        if position < end:
            self._begin(SIZE_BYTES, chunk[position:])
            self._prefix = True
        return frames

    def filled(self, count: int) -> list[memoryview]:
        """`count` bytes were read into `target()`: the frame that they complete, if they do."""
        self._filled += count
        whole = self._partial
        if whole is None or self._filled < len(whole):
            return []
        if self._filled < self._size:
            self._begin(self._size, whole)
            return []
        self._partial = None
        if not self._prefix:
            return [whole]
        self._prefix = False
        size = SIZE.unpack_from(whole)[0]
        if not 0 <= size <= self.max_frame_bytes:
            self.error = self._impossible(size)
            return []
        self._begin(size, whole[:0])
        return self.filled(0)

    def _begin(self, size: int, beginning: memoryview) -> None:
        self._size = size
        self._partial = memoryview(bytearray(min(size, max(FIRST_BYTES, 2 * len(beginning)))))
        self._partial[: len(beginning)] = beginning
        self._filled = len(beginning)

    def _impossible(self, size: int) -> ProtocolError:
        limit = f"0 to {self.max_frame_bytes} are allowed ({self.limit_name})"
        return ProtocolError(f"a frame of {size} bytes is announced, {limit}", offset=0)


def response_frame(correlation_id: int, flexible_header: bool, parts: Sequence[Buffer]) -> list[Buffer]:
    """A response's buffers with size and header in front; small ones come as one."""
    size = sum(map(len, parts))
    if flexible_header:
        head = FLEXIBLE_RESPONSE_HEAD.pack(size + 5, correlation_id)
    else:
        head = RESPONSE_HEAD.pack(size + 4, correlation_id)
    if size <= JOIN_LIMIT_BYTES:
        return [b"".join((head, *parts))]
    return [head, *parts]
