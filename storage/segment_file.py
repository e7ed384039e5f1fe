"""Open files and mappings of segments, and how long they are kept."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Sequence
from weakref import ref

from storage.disk import Disk
from storage.index import SegmentIndex

MAX_MAPPED = 512
"""Sealed segments that stay mapped after they were read. A mapping costs a file descriptor, and a busy broker has
other uses for those; a segment that loses its own is mapped again in some microseconds."""

EMPTY = memoryview(b"")

MAX_LOADED_BYTES = 64 << 20
"""Mapped pages, over all segments, that may count as the process's memory because they were read. They are page cache,
but whoever limits a container's memory, or looks at it, sees them grow with all that consumers read. To let go of a
megabyte takes some microseconds, to send it a hundred."""


class SegmentFile:
    """An open file, closed when its last user lets go: a flush in a worker thread survives a close."""

    __slots__ = ("_disk", "handle", "path")

    def __init__(self, disk: Disk, path: str, *, create: bool = False, writable: bool = True) -> None:
        self.handle = -1
        self._disk = disk
        self.path = path
        self.handle = disk.open(path, create=create, writable=writable)

    def sync(self) -> None:
        """Return when what was written is on the device."""
        self._disk.fsync(self.handle)

    def map(self, size_bytes: int) -> memoryview:
        """A view of the first bytes, as `Disk.mmap` makes it. Raises OSError if there are fewer."""
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


class Loaded:
    """The mappings that were read since they last let go of their pages. Worker threads read too."""

    def __init__(self) -> None:
        self._mappings: dict[int, ref[Mapping]] = {}
        self._size_bytes = 0

    def add(self, mapping: Mapping, size_bytes: int) -> None:
        """So many bytes of the mapping are about to be read."""
        self._mappings[id(mapping)] = ref(mapping)
        self._size_bytes += size_bytes
        if self._size_bytes > MAX_LOADED_BYTES:
            read, self._mappings, self._size_bytes = self._mappings, {}, 0
            for each in tuple(read.values()):
                found = each()
                if found is not None:
                    found.unload()


loaded = Loaded()

_mapped: deque[ref[Mapping]] = deque()


def keep_mapped(mapping: Mapping) -> None:
    """A sealed segment has been mapped; the one that was mapped longest ago may have to let go."""
    _mapped.append(ref(mapping))
    if len(_mapped) > MAX_MAPPED:
        oldest = _mapped.popleft()()
        if oldest is not None:
            oldest.close()
