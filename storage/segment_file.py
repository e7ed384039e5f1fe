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


def keep_mapped(segment: Segment) -> None:
    """A sealed segment has been mapped; the one that was mapped longest ago may have to let go."""
    _mapped.append(ref(segment))
    if len(_mapped) > MAX_MAPPED:
        oldest = _mapped.popleft()()
        if oldest is not None:
            oldest.unmap()
