"""One connection's bytes, sans-IO: what was read becomes frames, an answer becomes buffers to write.

Most frames arrive whole and are views of the one buffer that all connections of a listener read into; only a frame that
a read cut in two gets a buffer of its own, of exactly its size. A frame is valid until the next call of `next_frame`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from protocol.errors import ProtocolError
from protocol.types import Buffer

SIZE = struct.Struct(">i")
RESPONSE_HEAD = struct.Struct(">ii")
FLEXIBLE_RESPONSE_HEAD = struct.Struct(">iix")
"""Size, correlation id and, in flexible versions, an empty tag section."""

JOIN_LIMIT_BYTES = 16 * 1024
"""Answers up to this size become one buffer: one copy is cheaper than a vectored write of many small pieces."""


class FrameReader:
    """Cuts a stream of bytes into size-prefixed frames (protocol guide, "Protocol Basics")."""

    __slots__ = ("_chunk", "_end", "_filled", "_max_frame_bytes", "_partial", "_position", "_prefix")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._chunk = memoryview(b"")
        self._position = 0
        self._end = 0
        self._partial: memoryview | None = None
        self._filled = 0
        self._prefix = False

    def target(self) -> memoryview | None:
        """Where the next bytes belong; None: anywhere, then `feed` them."""
        return None if self._partial is None else self._partial[self._filled :]

    def filled(self, count: int) -> None:
        """`count` bytes were read into `target()`."""
        self._filled += count

    def feed(self, chunk: memoryview) -> None:
        """Bytes were read; the frames in them are views of `chunk`, which the caller may reuse once `next_frame`
        gave None."""
        self._chunk = chunk
        self._position = 0
        self._end = len(chunk)

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its size; None: what is left was kept. Raises ProtocolError on a bad size."""
        if self._partial is not None:
            return self._finish_partial()
        left = self._end - self._position
        if left < 4:
            if left:
                self._begin_partial(4, prefix=True)
            return None
        size = self._checked(SIZE.unpack_from(self._chunk, self._position)[0])
        start = self._position + 4
        if left - 4 < size:
            self._position = start
            self._begin_partial(size, prefix=False)
            return None
        self._position = start + size
        return self._chunk[start : self._position]

    def rest(self) -> bytes:
        """The bytes fed and not yet cut into frames, for a connection that must wait before it reads on."""
        rest = bytes(self._chunk[self._position : self._end])
        self._position = self._end
        return rest

    def _begin_partial(self, size: int, prefix: bool) -> None:
        rest = self._chunk[self._position : self._end]
        self._position = self._end
        self._partial = memoryview(bytearray(size))
        self._partial[: len(rest)] = rest
        self._filled = len(rest)
        self._prefix = prefix

    def _finish_partial(self) -> memoryview | None:
        assert self._partial is not None
        if self._filled < len(self._partial):
            return None
        whole, self._partial = self._partial, None
        if not self._prefix:
            return whole
        size = self._checked(SIZE.unpack_from(whole)[0])
        self._begin_partial(size, prefix=False)
        return self._finish_partial() if size == 0 else None

    def _checked(self, size: int) -> int:
        if size < 0 or size > self._max_frame_bytes:
            limit = f"a request has 0 to {self._max_frame_bytes} bytes (socket.request.max.bytes)"
            raise ProtocolError(f"a frame of {size} bytes is announced, {limit}", offset=0)
        return size


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
