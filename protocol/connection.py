"""The bytes of a connection, sans-IO: turns received bytes into frames, and responses into buffers to write.

Most frames arrive whole and are views of the buffer that all connections of a listener read into. Only a frame that
arrives in parts gets its own buffer, which grows with the received bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, cast

from protocol.errors import ProtocolError
from protocol.types import Buffer

SIZE: Final = struct.Struct(">i")
SIZE_BYTES: Final = SIZE.size
RESPONSE_HEAD: Final = struct.Struct(">ii")
FLEXIBLE_RESPONSE_HEAD: Final = struct.Struct(">iix")
"""Size, correlation id and, in flexible versions, an empty tag section."""

FIRST_BYTES: Final = 4 * 1024
"""Buffer for a partial frame before its bytes arrive. A client can announce a hundred megabytes in four bytes and then
send nothing, so that a buffer grows only in proportion to the received bytes."""

GROWTH: Final = 2
"""A buffer grows to GROWTH times the received bytes, plus FIRST_BYTES. Each growth copies the partial frame."""

USUAL_FRAME_BYTES: Final = 128 * 1024
USUAL_GROWTH: Final = 8
"""Up to USUAL_FRAME_BYTES (a usual batch has 16 to 64 KiB), a buffer has USUAL_GROWTH times the received bytes, so that
most frames get their whole buffer at once."""
assert FIRST_BYTES < USUAL_FRAME_BYTES

SPARE_BYTES: Final = 2 * 1024 * 1024
"""Largest buffer that is kept for the next frame: a producer's max.request.size, or replica.fetch.max.bytes of one or
two partitions. New memory of that size comes from the kernel, page by page, and is zeroed twice."""

SPARE_FACTOR: Final = 2
"""A kept buffer is at most this many times as large as its frame, because the memory of a request that waits is counted
by its frame."""

MANY_BUFFERS: Final = 1024
"""Maximum number of buffers that the system accepts in one write (IOV_MAX)."""

SMALL_BYTES: Final = 4096
"""Buffers below this size are copied into larger buffers, because a copy costs less than another buffer in the
write."""

JOIN_LIMIT_BYTES: Final = 16 * 1024
"""Responses up to this size are joined to one buffer: a copy is cheaper than a vectored write of many small pieces."""


class Spares:
    """Buffers of frames that arrived in parts. They serve for later frames when no view of them exists."""

    __slots__ = ("_buffers", "_count", "_max_bytes")

    def __init__(self, count: int, max_bytes: int = SPARE_BYTES) -> None:
        """Keeps the largest buffers, at most `count`, which is positive, of at most `max_bytes` each."""
        self._count = count
        self._max_bytes = max_bytes
        self._buffers: list[bytearray] = []
        """The largest first."""

    def __len__(self) -> int:
        return len(self._buffers)

    def take(self, size: int) -> bytearray | None:
        """Returns a buffer without views for a frame of this size; None if there is none."""
        if size > FIRST_BYTES:
            for buffer in reversed(self._buffers):
                if size <= len(buffer) <= SPARE_FACTOR * size and is_unseen(buffer):
                    return buffer
        return None

    def keep(self, buffer: bytearray) -> None:
        """Keeps the buffer of a frame that is whole, if it is larger than another."""
        buffers, size, count = self._buffers, len(buffer), self._count
        if not FIRST_BYTES < size <= self._max_bytes or (len(buffers) == count and size <= len(buffers[-1])):
            return
        for kept in buffers:
            if kept is buffer:
                return
        self._buffers = sorted([*buffers, buffer], key=len, reverse=True)[:count]

    def clear(self) -> None:
        """Forgets the buffers; those without views are freed."""
        self._buffers = []


class FrameReader:
    """Cuts a stream of bytes into size-prefixed frames (protocol guide, "Protocol Basics")."""

    __slots__ = (
        "_partial", "_prefix", "_spares", "announced_bytes", "arrived_bytes", "error", "frames_begun", "held_bytes",
        "is_full", "limit_name", "max_frame_bytes",
    )  # fmt: skip

    def __init__(
        self, max_frame_bytes: int, limit_name: str = "socket.request.max.bytes", spares: Spares | None = None
    ) -> None:
        """`spares` has buffers for partial frames, and keeps theirs."""
        self.max_frame_bytes = max_frame_bytes
        self.limit_name = limit_name
        self.error: ProtocolError | None = None
        """The error of an invalid frame size. Frames before it are valid; no frames follow."""
        self.announced_bytes = 0
        """The size of the partial frame, or SIZE_BYTES while its size is incomplete."""
        self.arrived_bytes = 0
        """Received bytes of the partial frame."""
        self.frames_begun = 0
        """Number of frames that arrived in parts."""
        self.held_bytes = 0
        """The size of the partial frame's buffer."""
        self.is_full = False
        """True if the partial frame's buffer is full: call `grow` before `target`."""
        self._partial: memoryview | None = None
        self._prefix = False
        self._spares = spares

    @property
    def growth_bytes(self) -> int:
        """Bytes that `grow` adds to the buffer."""
        return room(self.announced_bytes, self.arrived_bytes) - self.held_bytes

    def grow(self) -> None:
        """Enlarges the buffer of the partial frame when it `is_full`."""
        partial, size = self._partial, room(self.announced_bytes, self.arrived_bytes)
        assert partial is not None
        buffer = cast(bytearray, partial.obj)  # every buffer here is a view of a bytearray
        if size <= len(buffer):  # a kept one
            self._hold(memoryview(buffer)[:size])
            return
        larger = memoryview(bytearray(size))
        larger[: self.arrived_bytes] = partial
        self._hold(larger)

    def drop(self) -> None:
        """Drops a partial frame."""
        self._hold(None)
        self._prefix = False

    def target(self) -> memoryview | None:
        """Returns the buffer to read into before `filled` is called; None without a partial frame: the caller reads
        into its own buffer and passes that to `cut`."""
        return None if self._partial is None else self._partial[self.arrived_bytes :]

    def cut(self, chunk: memoryview, is_short: bool = False) -> list[memoryview]:
        """Returns the whole frames in a chunk as views, without their sizes. Copies a partial frame at the end; while
        memory `is_short`, its buffer has no space for more bytes."""
        position, end = 0, len(chunk)
        if end >= SIZE_BYTES and SIZE.unpack_from(chunk)[0] == end - SIZE_BYTES <= self.max_frame_bytes:
            return [chunk[SIZE_BYTES:]]  # exactly one whole frame, as in most reads
        frames: list[memoryview] = []
        while end - position >= SIZE_BYTES:
            size: int = SIZE.unpack_from(chunk, position)[0]
            start = position + SIZE_BYTES
            position = start + size
            if not 0 <= size <= self.max_frame_bytes:
                self.error = self._impossible(size)
                return frames
            if position > end:
                self.frames_begun += 1
                self._begin(size, chunk[start:])
                if is_short:
                    self._shrink()
                return frames
            frames.append(chunk[start:position])
        if position < end:
            self.frames_begun += 1
            self._begin(SIZE_BYTES, chunk[position:])
            self._prefix = True
        return frames

    def filled(self, count: int) -> list[memoryview]:
        """Processes `count` bytes that were read into `target()`; returns the frame if they complete it. May set
        `is_full`."""
        self.arrived_bytes += count
        whole = self._partial
        if whole is None or self.arrived_bytes < self.announced_bytes:
            self.is_full = self.arrived_bytes == self.held_bytes
            return []
        self._hold(None)
        if not self._prefix:
            if self._spares is not None:
                self._spares.keep(cast(bytearray, whole.obj))
            return [whole]
        self._prefix = False
        size = SIZE.unpack_from(whole)[0]
        if not 0 <= size <= self.max_frame_bytes:
            self.error = self._impossible(size)
            return []
        self._begin(size, whole[:0])
        return self.filled(0)

    def _begin(self, size: int, beginning: memoryview) -> None:
        self.announced_bytes = size
        self.arrived_bytes = len(beginning)
        held = room(size, self.arrived_bytes)
        spare = None if self._spares is None else self._spares.take(size)
        partial = memoryview(bytearray(held) if spare is None else spare)[:held]
        partial[: self.arrived_bytes] = beginning
        self._hold(partial)

    def _hold(self, partial: memoryview | None) -> None:
        self._partial = partial
        self.held_bytes = 0 if partial is None else len(partial)
        self.is_full = False

    def _shrink(self) -> None:
        assert self._partial is not None
        self._hold(memoryview(bytearray(self._partial[: max(1, self.arrived_bytes)])))
        self.is_full = self.arrived_bytes == self.held_bytes

    def _impossible(self, size: int) -> ProtocolError:
        limit = f"0 to {self.max_frame_bytes} are allowed ({self.limit_name})"
        return ProtocolError(f"a frame of {size} bytes is announced, {limit}", offset=0)


def is_unseen(buffer: bytearray) -> bool:
    """True if no view of the buffer exists. (A buffer with views can't be resized.)"""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True


def room(size: int, arrived: int) -> int:
    """Returns the buffer size for a frame of `size` bytes after `arrived` bytes."""
    return min(size, max(min(USUAL_GROWTH * arrived, USUAL_FRAME_BYTES), GROWTH * arrived + FIRST_BYTES))


def joined(answers: list[Buffer]) -> list[Buffer]:
    """Returns the same bytes in fewer buffers if there are many: an answer about a hundred thousand partitions has more
    than a million buffers, and libuv writes at most 1,048,576 at once."""
    return answers if len(answers) <= MANY_BUFFERS else small_joined(answers)


def small_joined(buffers: list[Buffer]) -> list[Buffer]:
    """Returns the same bytes, with small buffers joined."""
    result: list[Buffer] = []
    small: list[Buffer] = []
    for buffer in buffers:
        if len(buffer) < SMALL_BYTES:
            small.append(buffer)
            continue
        if small:
            result.append(b"".join(small))
            small = []
        result.append(buffer)
    if small:
        result.append(b"".join(small))
    return result


def response_frame(correlation_id: int, flexible_header: bool, parts: Sequence[Buffer]) -> list[Buffer]:
    """Returns a response's buffers after its size and header. A small response becomes a single buffer."""
    size = sum(map(len, parts))
    if flexible_header:
        head = FLEXIBLE_RESPONSE_HEAD.pack(size + 5, correlation_id)
    else:
        head = RESPONSE_HEAD.pack(size + 4, correlation_id)
    if size <= JOIN_LIMIT_BYTES:
        return [b"".join((head, *parts))]
    return joined([head, *parts])
