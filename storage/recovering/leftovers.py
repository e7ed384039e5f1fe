"""Tidies up what a crash may leave in a log's folder beside its segments. Kafka class LogLoader."""

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
"""A deleted snapshot of the metadata log: its owner removes it."""


def tidy(directory: str, config: LogConfig, *, disk: Disk, now_ms: int, clean: bool = False) -> list[str]:
    """Finish or undo what was going on, and return the names of the files that are left. Raises OSError.

    Files set aside and unfinished ones go. A finished replacement takes its place: the segments that it was made from
    go, then it loses its suffix. An index without its segment goes.

    Unless the log was closed in order (`clean`), all changes of names are on the device before such a file goes: they
    are of a truncation, maybe, that was cut short, and what it took away would come back with the next loss of power.
    """
    names = disk.listdir(directory)
    if not any(name.endswith((DELETED, CLEANED, SWAP)) for name in names):
        return _without_orphans(directory, names, disk, clean=clean)
    if not clean:
        disk.fsync_dir(directory)
    unfinished = [offset for name in names if name.endswith(CLEANED) and (offset := base_offset_of(name)) is not None]
    for name in names:
        set_aside = name.endswith(DELETED) and not name.endswith(METADATA_SNAPSHOT_DELETED)
        # A split writes several replacements: one beyond an unfinished one is of a split that did not complete.
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
