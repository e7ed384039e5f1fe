"""Cutting a log's end off. Files are replaced, never cut: whoever reads the old one keeps what it reads."""

from __future__ import annotations

import os

from storage.config import LogConfig
from storage.disk import Disk
from storage.names import CLEANED
from storage.segment.segment import Segment

COPY_BYTES = 1 << 20
"""How much of what is kept is copied in one go."""


def shorten(old: Segment, offset: int, config: LogConfig, *, disk: Disk, now_ms: int) -> Segment:
    """Returns a segment with what this one has before the offset, in its place on the disk. Raises OSError.

    A batch that the offset is in the middle of goes as a whole. Until the copy's name is on the device, a file of it
    keeps its suffix: should this be cut short, the next start knows of it by that (`leftovers.tidy`).
    """
    place = old.locate(offset)
    size_bytes = old.size_bytes if place is None else place.position
    created_ms = old.created_ms if size_bytes else now_ms
    copy = Segment.create(old.directory, old.base_offset, config, disk=disk, now_ms=created_ms, suffix=CLEANED)
    batches = [header for _, header in old.batches(0, size_bytes)]
    _copy(old, copy.path, size_bytes, disk)
    aborted = list(old.txn_index)
    old.release()
    for path in (old.index.path, old.time_index.path, old.txn_index.path):
        disk.unlink(path, missing_ok=True)
    copy.adopt(batches, size_bytes)
    unfinished = copy.index.path
    disk.close(disk.open(unfinished, create=True))
    copy.rename("")
    for entry in aborted:
        if batches and entry.last_offset <= batches[-1].last_offset:
            copy.txn_index.append(entry)
    copy.txn_index.flush()
    disk.fsync_dir(os.path.dirname(copy.path))
    disk.unlink(unfinished, missing_ok=True)
    return copy


def _copy(source: Segment, path: str, size_bytes: int, disk: Disk) -> None:
    handle = disk.open(path)
    try:
        for start in range(0, size_bytes, COPY_BYTES):
            disk.pwritev(handle, [source.view(start, min(size_bytes, start + COPY_BYTES))], start)
        disk.fsync(handle)
    finally:
        disk.close(handle)
