"""Detects reads that would wait for the device, and reads their pages ahead in a worker thread.

The event loop touches a mapping's pages when it sends them. A page that is not in memory would stop the loop, and every
client with it, until the device has read the page.
"""

from __future__ import annotations

from typing import NamedTuple

from storage.disk import Disk
from storage.local_log import LocalLog
from storage.segment.file import SegmentFile
from storage.segment.segment import Segment


class ColdRead(NamedTuple):
    """A read that would wait for the device."""

    log: LocalLog
    segment: Segment
    offset: int
    max_bytes: int
    disk: Disk

    def read_ahead(self) -> None:
        """Reads the pages into memory. For a worker thread. Raises LogDirFailure."""
        with self.log.failing("reading ahead in"):
            try:
                _read_ahead(self.segment, self.offset, self.max_bytes, self.disk)
            except FileNotFoundError:
                if self.segment in self.log.segments:
                    raise


def cold_read(log: LocalLog, offset: int, max_bytes: int, disk: Disk) -> ColdRead | None:
    """Returns the read of `max_bytes` from the offset, if it would wait for the device; None if not, or if unknown.

    `max_bytes` comes from the client. If it is 0 or negative, only the pages that the look-up touches are checked.
    """
    max_bytes = max(max_bytes, 0)
    segment = log.segments.active
    if not log.log_start_offset <= offset < log.log_end_offset:
        return None
    if offset < segment.base_offset:
        segment = log.segments.containing(offset)
    read = ColdRead(log, segment, offset, max_bytes, disk)
    return None if _is_index_resident(segment, disk) and _is_resident(segment, offset, max_bytes, disk) else read


def _is_index_resident(segment: Segment, disk: Disk) -> bool:
    if segment.index.is_in_memory:
        return True
    try:
        file = SegmentFile(disk, segment.index.path, writable=False)
    except FileNotFoundError:
        return True
    size = disk.size(file.handle)
    return not size or disk.is_resident(file.handle, 0, size)


def _is_resident(segment: Segment, offset: int, max_bytes: int, disk: Disk) -> bool:
    start = segment.index.lookup(offset).position
    size = min(max_bytes + segment.index_interval_bytes, segment.size_bytes - start)
    if size <= 0:
        return True
    file = SegmentFile(disk, segment.path, writable=False)
    return disk.is_resident(file.handle, start, size)


def _read_ahead(segment: Segment, offset: int, max_bytes: int, disk: Disk) -> None:
    if not segment.index.is_in_memory and disk.exists(segment.index.path):
        index = SegmentFile(disk, segment.index.path, writable=False)
        disk.read_ahead(index.handle, 0, max(disk.size(index.handle), 1))
    start = segment.index.lookup(offset).position
    size = min(max_bytes + segment.index_interval_bytes, segment.size_bytes - start)
    if size > 0:
        file = SegmentFile(disk, segment.path, writable=False)
        disk.read_ahead(file.handle, start, size)
