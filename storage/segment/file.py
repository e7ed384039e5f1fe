"""Open files and mappings of segments, and how long they stay open."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from storage.disk import Buffer, Disk
from storage.segment.index import SegmentIndex

EMPTY = memoryview(b"")


class SegmentFile:
    """An open file, closed when its last user lets go: a flush in a worker thread survives a close."""

    __slots__ = ("_disk", "handle", "path")

    def __init__(self, disk: Disk, path: str, *, create: bool = False, writable: bool = True) -> None:
        self.handle = -1
        self._disk = disk
        self.path = path
        self.handle = disk.open(path, create=create, writable=writable)

    # Who calls these holds the file meanwhile, so that no other thread's `close` gives its handle to another file.

    def write(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Write all of the buffers, one after the other, at the offset."""
        self._disk.pwritev(self.handle, buffers, offset)

    def sync(self) -> None:
        """Return when what was written is on the device."""
        self._disk.fsync(self.handle)

    def cut(self, size_bytes: int) -> None:
        """Cut or extend the file to this size."""
        self._disk.ftruncate(self.handle, size_bytes)

    def map(self, size_bytes: int) -> memoryview:
        """Returns a view of the first bytes, as `Disk.mmap` makes it. Raises OSError if there are fewer."""
        try:
            return self._disk.mmap(self.handle, size_bytes)
        except ValueError:
            raise OSError(errno.EIO, f"the file is shorter than {size_bytes} bytes", self.path) from None

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """So many bytes from the offset on. Raises OSError if there are fewer."""
        data = self._disk.pread(self.handle, size_bytes, offset)
        if len(data) != size_bytes:
            raise OSError(errno.EIO, f"{len(data)} bytes at {offset}, not {size_bytes}", self.path)
        return data

    def __del__(self) -> None:
        if self.handle >= 0:
            self._disk.close(self.handle)


class OpenFile:
    """The file of a segment that is appended to, for as long as it may stay open (see open_files.py).

    The system reports an error of the device that comes while nobody has the file open to the next one who opens it,
    unless it has forgotten the file meanwhile.
    """

    __slots__ = ("__weakref__", "file", "was_opened")

    def __init__(self) -> None:
        self.file: SegmentFile | None = None
        self.was_opened = False

    def open(self, disk: Disk, path: str, *, create: bool = False) -> SegmentFile:
        """Opens it, as one of the files of the disk that stay open."""
        file = SegmentFile(disk, path, create=create)
        self.file, self.was_opened = file, True
        disk.open_files.files.add(self)
        return file

    def close(self) -> None:
        """Let go of it; who uses it meanwhile can go on."""
        self.file = None


class Mapping:
    """A segment's file in memory, and the indexes that are mapped beside it."""

    __slots__ = ("__weakref__", "_disk", "_indexes", "view")

    def __init__(self, disk: Disk, view: memoryview, indexes: Sequence[SegmentIndex]) -> None:
        self._disk = disk
        self._indexes = indexes
        self.view = view

    def unload(self) -> None:
        """Let go of the pages, not of the mapping."""
        self._disk.unload(self.view)

    def close(self) -> None:
        """Let go of it all; views of it stay valid."""
        self.view = EMPTY
        for index in self._indexes:
            index.release()
