"""One connection's bytes, sans-IO: bytes read become frames, an answer becomes buffers to write.

Most frames arrive whole and are views of the one buffer that all connections of a listener read into; only a frame that
a read cut in two gets a buffer of its own, which grows with what has come.
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
"""Room that a cut frame gets before its bytes are there. Four bytes announce a hundred megabytes, and need not be
followed by any; so there is never more room than in proportion to what has come."""

GROWTH: Final = 2
"""So many times what has come, and FIRST_BYTES more; a frame is copied once more for each time that its room grows."""

USUAL_FRAME_BYTES: Final = 128 * 1024
USUAL_GROWTH: Final = 8
"""A frame up to this size (the usual batch has 16 to 64 KiB) mostly gets all of its room at once."""
assert FIRST_BYTES < USUAL_FRAME_BYTES

SPARE_BYTES: Final = 2 * 1024 * 1024
"""Room for a follower's usual answer, replica.fetch.max.bytes of a partition or two, that is worth keeping: new memory
of that size comes from the kernel, page by page, and zeroed twice."""

JOIN_LIMIT_BYTES: Final = 16 * 1024
"""Answers up to this size become one buffer: one copy is cheaper than a vectored write of many small pieces."""


class FrameReader:
    """Cuts a stream of bytes into size-prefixed frames (protocol guide, "Protocol Basics")."""

    __slots__ = (
        "_partial", "_prefix", "_spare", "_spare_bytes", "announced_bytes", "arrived_bytes", "error", "frames_begun",
        "held_bytes", "is_full", "limit_name", "max_frame_bytes",
    )  # fmt: skip

    def __init__(
        self, max_frame_bytes: int, limit_name: str = "socket.request.max.bytes", spare_bytes: int = 0
    ) -> None:
        """The room of a frame that came in pieces, up to `spare_bytes`, serves for later ones once no view of it is
        left."""
        self.max_frame_bytes = max_frame_bytes
        self.limit_name = limit_name
        self.error: ProtocolError | None = None
        """Set by a size that cannot be: frames before it are good, nothing comes after it."""
        self.announced_bytes = 0
        """Of the frame that is not whole yet, or only its size."""
        self.arrived_bytes = 0
        """Of these."""
        self.frames_begun = 0
        """Frames that did not come whole."""
        self.held_bytes = 0
        """The room that the frame has which is not whole yet."""
        self.is_full = False
        """That frame has no room for more: it needs to `grow` before there is a `target`."""
        self._partial: memoryview | None = None
        self._prefix = False
        self._spare_bytes = spare_bytes
        self._spare: bytearray | None = None

    @property
    def growth_bytes(self) -> int:
        """How much larger `grow` makes the room."""
        return room(self.announced_bytes, self.arrived_bytes) - self.held_bytes

    def grow(self) -> None:
        """Gives the frame that `is_full` more room."""
        partial = self._partial
        assert partial is not None
        larger = memoryview(bytearray(room(self.announced_bytes, self.arrived_bytes)))
        larger[: self.arrived_bytes] = partial
        self._hold(larger)

    def drop(self) -> None:
        """Drops an unfinished frame: nothing more comes."""
        self._hold(None)
        self._prefix = False

    def target(self) -> memoryview | None:
        """Returns the buffer to read into, to be followed by `filled`; None when any buffer will do, to be passed to
        `cut`."""
        return None if self._partial is None else self._partial[self.arrived_bytes :]

    def cut(self, chunk: memoryview, is_short: bool = False) -> list[memoryview]:
        """Returns the whole frames in a chunk, without their sizes, as views of it; the rest is copied, and gets no
        room for more while memory `is_short`."""
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
        """Takes `count` bytes that were read into `target()`, and returns the frame that they complete, if they do. See
        `is_full`."""
        self.arrived_bytes += count
        whole = self._partial
        if whole is None or self.arrived_bytes < self.announced_bytes:
            self.is_full = self.arrived_bytes == self.held_bytes
            return []
        self._hold(None)
        if not self._prefix:
            if self._spare_bytes:
                self._keep(whole)
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
        spare = self._spare
        if spare is not None and FIRST_BYTES < size <= len(spare) and is_unseen(spare):
            partial = memoryview(spare)[:size]
        else:
            partial = memoryview(bytearray(room(size, self.arrived_bytes)))
        partial[: self.arrived_bytes] = beginning
        self._hold(partial)

    def _keep(self, whole: memoryview) -> None:
        spare_bytes = FIRST_BYTES if self._spare is None else len(self._spare)
        if spare_bytes < len(whole) <= self._spare_bytes:
            self._spare = cast(bytearray, whole.obj)  # as all room here is

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
    """True where no view of the buffer is left: one that has any cannot be resized."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True


def room(size: int, arrived: int) -> int:
    """Returns the size of the buffer for a frame of which `arrived` bytes have come."""
    return min(size, max(min(USUAL_GROWTH * arrived, USUAL_FRAME_BYTES), GROWTH * arrived + FIRST_BYTES))


def response_frame(correlation_id: int, flexible_header: bool, parts: Sequence[Buffer]) -> list[Buffer]:
    """Returns a response's buffers with size and header in front; small ones come as one."""
    size = sum(map(len, parts))
    if flexible_header:
        head = FLEXIBLE_RESPONSE_HEAD.pack(size + 5, correlation_id)
    else:
        head = RESPONSE_HEAD.pack(size + 4, correlation_id)
    if size <= JOIN_LIMIT_BYTES:
        return [b"".join((head, *parts))]
    return [head, *parts]
