"""Open files and mappings of segments."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from storage.disk import Buffer, Disk
from storage.segment.index import SegmentIndex

EMPTY = memoryview(b"")


class SegmentFile:
    """An open file, closed with its last reference, so that a flush in a worker thread can finish after a close."""

    __slots__ = ("_disk", "handle", "path")

    def __init__(self, disk: Disk, path: str, *, create: bool = False, writable: bool = True) -> None:
        self.handle = -1
        self._disk = disk
        self.path = path
        self.handle = disk.open(path, create=create, writable=writable)

    # The caller must hold a reference meanwhile: after another thread's close, the handle could be another file's.

    def write(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Writes all buffers in order at the offset."""
        self._disk.pwritev(self.handle, buffers, offset)

    def sync(self) -> None:
        """Flushes the file to the device."""
        self._disk.fsync(self.handle)

    def cut(self, size_bytes: int) -> None:
        """Cuts or extends the file to this size."""
        self._disk.ftruncate(self.handle, size_bytes)

    def map(self, size_bytes: int) -> memoryview:
        """Returns a mapping of the first `size_bytes` bytes (see `Disk.mmap`). Raises OSError if there are fewer."""
        try:
            return self._disk.mmap(self.handle, size_bytes)
        except ValueError:
            raise OSError(errno.EIO, f"the file is shorter than {size_bytes} bytes", self.path) from None

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Returns `size_bytes` bytes from the offset on. Raises OSError if there are fewer."""
        data = self._disk.pread(self.handle, size_bytes, offset)
        if len(data) != size_bytes:
            raise OSError(errno.EIO, f"{len(data)} bytes at {offset}, not {size_bytes}", self.path)
        return data

    def __del__(self) -> None:
        if self.handle >= 0:
            self._disk.close(self.handle)


class OpenFile:
    """The open file of a segment that is appended to, until open_files.py closes it.

    If the device fails while the file is closed, the system reports the error after the next open, unless it has
    dropped the file's state from memory meanwhile.
    """

    __slots__ = ("__weakref__", "file", "was_opened")

    def __init__(self) -> None:
        self.file: SegmentFile | None = None
        self.was_opened = False

    def open(self, disk: Disk, path: str, *, create: bool = False) -> SegmentFile:
        """Opens the file, and registers it as an open file of the disk."""
        file = SegmentFile(disk, path, create=create)
        self.file, self.was_opened = file, True
        disk.open_files.files.add(self)
        return file

    def close(self) -> None:
        """Drops the reference. Current users can continue."""
        self.file = None


class Mapping:
    """The mapping of a segment's file, and the mapped indexes to close with it."""

    __slots__ = ("__weakref__", "_disk", "_indexes", "view")

    def __init__(self, disk: Disk, view: memoryview, indexes: Sequence[SegmentIndex]) -> None:
        self._disk = disk
        self._indexes = indexes
        self.view = view

    def unload(self) -> None:
        """Releases the pages, but not the mapping."""
        self._disk.unload(self.view)

    def close(self) -> None:
        """Drops the mapping and releases the indexes. Views stay valid."""
        self.view = EMPTY
        for index in self._indexes:
            index.release()
