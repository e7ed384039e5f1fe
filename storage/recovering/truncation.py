"""Truncates a segment. Its files are replaced, never truncated, so that readers can continue with the old files."""

from __future__ import annotations

import os
from typing import NamedTuple

from protocol.records.batch import BatchHeader
from storage.config import LogConfig
from storage.disk import Disk
from storage.names import CLEANED
from storage.segment.segment import Segment

COPY_BYTES = 1 << 20
"""Bytes of the remaining part that are copied in a write."""


class Copy(NamedTuple):
    """A segment whose file has the first batches of another one."""

    segment: Segment
    batches: list[BatchHeader]
    size_bytes: int


def copy_before(old: Segment, offset: int, config: LogConfig, *, disk: Disk, now_ms: int) -> Copy:
    """Returns a copy of a segment that ends before the offset, for `put_in_place`. A batch that contains the offset is
    left out as a whole. Raises OSError, with nothing changed."""
    place = old.locate(offset)
    size_bytes = old.size_bytes if place is None else place.position
    created_ms = old.created_ms if size_bytes else now_ms
    segment = Segment.create(old.directory, old.base_offset, config, disk=disk, now_ms=created_ms, suffix=CLEANED)
    batches = [header for _, header in old.batches(0, size_bytes)]
    try:
        _copy(old, segment.path, size_bytes, disk)
    except OSError:
        segment.release()
        disk.unlink(segment.path, missing_ok=True)
        raise
    return Copy(segment, batches, size_bytes)


def put_in_place(old: Segment, shorter: Copy, *, disk: Disk) -> Segment:
    """Replaces a segment on the disk by its copy, and returns the copy. Until the copy's name is durable, its index
    file keeps the `.cleaned` suffix, by which the next start detects an interrupted truncation (`leftovers.tidy`).
    Raises OSError."""
    copy, batches, size_bytes = shorter
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
