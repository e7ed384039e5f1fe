"""Open files and mappings of segments, and how long they are kept."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from weakref import ref

from storage.disk import Disk

if TYPE_CHECKING:
    from storage.segment import Segment

MAX_MAPPED = 512
"""Sealed segments that stay mapped after they were read. A mapping costs a file descriptor, and a busy broker has
other uses for those; a segment that loses its own is mapped again in some microseconds."""

_mapped: deque[ref[Segment]] = deque()

MAX_LOADED_BYTES = 64 << 20
"""Mapped pages, over all segments, that may count as the process's memory because they were read. They are page cache,
but whoever limits a container's memory, or looks at it, sees them grow with all that consumers read. To let go of a
megabyte takes some microseconds, to send it a hundred."""


class SegmentFile:
    """An open file, closed when its last user lets go: a flush in a worker thread survives a close."""

    __slots__ = ("_disk", "handle")

    def __init__(self, disk: Disk, path: str, *, create: bool = False, writable: bool = True) -> None:
        self.handle = -1
        self._disk = disk
        self.handle = disk.open(path, create=create, writable=writable)

    def sync(self) -> None:
        """Return when what was written is on the device."""
        self._disk.fsync(self.handle)

    def __del__(self) -> None:
        if self.handle >= 0:
            self._disk.close(self.handle)


class Loaded:
    """The segments whose mappings were read since they last let go of their pages. Worker threads read too."""

    def __init__(self) -> None:
        self._segments: dict[int, ref[Segment]] = {}
        self._size_bytes = 0

    def add(self, segment: Segment, size_bytes: int) -> None:
        """So many bytes of the segment's mapping are about to be read."""
        self._segments[id(segment)] = ref(segment)
        self._size_bytes += size_bytes
        if self._size_bytes > MAX_LOADED_BYTES:
            read, self._segments, self._size_bytes = self._segments, {}, 0
            for each in tuple(read.values()):
                found = each()
                if found is not None:
                    found.unload()


loaded = Loaded()


def keep_mapped(segment: Segment) -> None:
    """A sealed segment has been mapped; the one that was mapped longest ago may have to let go."""
    _mapped.append(ref(segment))
    if len(_mapped) > MAX_MAPPED:
        oldest = _mapped.popleft()()
        if oldest is not None:
            oldest.unmap()
