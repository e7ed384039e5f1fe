"""A disk that fails on demand."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from storage.disk import Buffer, OsDisk, Space

FULL = OSError(errno.ENOSPC, "No space left on device")
BROKEN = OSError(errno.EIO, "Input/output error")


class BadDisk(OsDisk):
    """A disk on which a call fails if the rule returns an error: (call, path) -> the error, or None."""

    __slots__ = ("fault", "measured", "paths", "room")

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[str, str], OSError | None] = lambda call, path: None
        self.room: int | None = None
        """Number of bytes that can be written before the disk is full."""
        self.measured: Space | None = None
        """The space that it says it has; None for the machine's."""
        self.paths: dict[int, str] = {}

    def _check(self, call: str, path: str) -> None:
        error = self.fault(call, path)
        if error is not None:
            raise error

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        self._check("open", path)
        handle = super().open(path, writable=writable, create=create, truncate=truncate)
        self.paths[handle] = path
        return handle

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        self._check("write", self.paths[handle])
        if self.room is not None:
            data = b"".join(map(bytes, buffers))
            if len(data) > self.room:
                super().pwritev(handle, [data[: self.room]], offset)
                self.room = 0
                raise FULL
            self.room -= len(data)
        return super().pwritev(handle, buffers, offset)

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        self._check("read", self.paths[handle])
        return super().pread(handle, size_bytes, offset)

    def fsync(self, handle: int) -> None:
        self._check("fsync", self.paths[handle])
        super().fsync(handle)

    def fdatasync(self, handle: int) -> None:
        self._check("fsync", self.paths[handle])
        super().fdatasync(handle)

    def space(self, path: str) -> Space:
        return super().space(path) if self.measured is None else self.measured

    def rename(self, source: str, target: str) -> None:
        self._check("rename", source)
        super().rename(source, target)


def fails(call: str, suffix: str = "", error: OSError = BROKEN) -> Callable[[str, str], OSError | None]:
    return lambda called, path: error if called == call and path.endswith(suffix) else None
