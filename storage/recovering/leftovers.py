"""Removes or completes the files that a crash may leave in a log's folder. Kafka class LogLoader."""

from __future__ import annotations

import os
from collections.abc import Iterable

from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import tell
from storage.names import CLEANED, DELETED, INDEXES, LOG, SWAP, base_offset_of, segment_file
from storage.recovering.ending import find_end
from storage.segment.segment import Segment

METADATA_SNAPSHOT_DELETED = ".checkpoint" + DELETED
"""Suffix of a deleted snapshot of the metadata log. The metadata log removes such files itself."""


def tidy(directory: str, config: LogConfig, *, disk: Disk, now_ms: int, clean: bool = False) -> list[str]:
    """Completes or undoes interrupted replacements, and returns the names of the remaining files. Raises OSError.

    Deletes `.deleted` and `.cleaned` files, and indexes without a segment. A `.swap` file replaces the segments that it
    was made from: they are deleted, then the file loses its suffix.

    After an unclean stop (not `clean`), syncs the folder before the first deletion: an interrupted truncation may have
    renamed segments, and without the sync the next power loss would bring the truncated segments back.
    """
    names = disk.listdir(directory)
    if not any(name.endswith((DELETED, CLEANED, SWAP)) for name in names):
        return _without_orphans(directory, names, disk, clean=clean)
    if not clean:
        disk.fsync_dir(directory)
    unfinished = [offset for name in names if name.endswith(CLEANED) and (offset := base_offset_of(name)) is not None]
    for name in names:
        set_aside = name.endswith(DELETED) and not name.endswith(METADATA_SNAPSHOT_DELETED)
        # A split writes several replacements. A `.swap` beyond a `.cleaned` file belongs to an incomplete split.
        invalid = name.endswith(SWAP) and bool(unfinished) and (base_offset_of(name) or 0) >= min(unfinished)
        if set_aside or invalid or name.endswith(CLEANED):
            disk.unlink(os.path.join(directory, name), missing_ok=True)
    _complete_swaps(directory, config, disk, now_ms)
    return _without_orphans(directory, disk.listdir(directory), disk, clean=False)


def _complete_swaps(directory: str, config: LogConfig, disk: Disk, now_ms: int) -> None:
    names = disk.listdir(directory)
    swaps = [_open_swap(directory, name, config, disk, now_ms) for name in names if name.endswith(LOG + SWAP)]
    if swaps:
        low = min(segment.base_offset for segment in swaps)
        high = max(find_end(segment).offset for segment in swaps)
        for name in names:
            offset = base_offset_of(name)
            if offset is not None and low <= offset < high and not name.endswith(SWAP):
                disk.unlink(os.path.join(directory, name))
        for segment in swaps:
            segment.release()
    for name in names:
        if name.endswith(SWAP):
            path = os.path.join(directory, name)
            disk.rename(path, path.removesuffix(SWAP))


def _open_swap(directory: str, name: str, config: LogConfig, disk: Disk, now_ms: int) -> Segment:
    info = disk.stat(os.path.join(directory, name))
    size = info.size_bytes if info else 0
    offset = base_offset_of(name) or 0
    return Segment(directory, offset, config, disk=disk, now_ms=now_ms, size_bytes=size, sealed=True, suffix=SWAP)


def _without_orphans(directory: str, names: list[str], disk: Disk, *, clean: bool) -> list[str]:
    orphans = set(_orphans(names))
    for name in orphans:
        if clean:
            log_name = segment_file(base_offset_of(name) or 0, LOG)
            tell("segment is missing", os.path.join(directory, log_name), left=name)
        disk.unlink(os.path.join(directory, name), missing_ok=True)
    return [name for name in names if name not in orphans]


def _orphans(names: Iterable[str]) -> Iterable[str]:
    present = frozenset(names)
    for name in present:
        offset = base_offset_of(name)
        if offset is not None and name.endswith(INDEXES) and segment_file(offset, LOG) not in present:
            yield name
