"""Removes or completes the files that a crash may leave in a log's folder. Kafka class LogLoader."""

from __future__ import annotations

import os
from collections.abc import Iterable

from storage.config import MAX_LONG, LogConfig
from storage.disk import Disk
from storage.failure import tell
from storage.names import CLEANED, DELETED, INDEXES, LOG, SWAP, base_offset_of, segment_file
from storage.recovering.kept import RecordKeeper, content_of
from storage.recovering.salvage import sound_batches
from storage.segment.segment import Segment

METADATA_SNAPSHOT_DELETED = ".checkpoint" + DELETED
"""Suffix of a deleted snapshot of the metadata log. The metadata log removes such files itself."""


def tidy(directory: str, config: LogConfig, *, disk: Disk, now_ms: int, clean: bool = False) -> list[str]:
    """Completes or undoes interrupted replacements, and returns the names of the remaining files. Raises OSError.

    Deletes `.deleted` and `.cleaned` files, and indexes without a segment. A sound `.swap` file replaces the segments
    that it was made from: they are deleted, then the file loses its suffix. A damaged one is set aside, and they stay.

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
        # A split writes several replacements. A `.swap` beyond a `.cleaned` file belongs to an incomplete split.
        invalid = name.endswith(SWAP) and bool(unfinished) and (base_offset_of(name) or 0) >= min(unfinished)
        if invalid or name.endswith(CLEANED):
            disk.unlink(os.path.join(directory, name), missing_ok=True)
    _complete_swaps(directory, config, disk, now_ms)
    for name in disk.listdir(directory):
        if name.endswith(DELETED) and not name.endswith(METADATA_SNAPSHOT_DELETED):
            disk.unlink(os.path.join(directory, name))
    return _without_orphans(directory, disk.listdir(directory), disk, clean=False)


def _complete_swaps(directory: str, config: LogConfig, disk: Disk, now_ms: int) -> None:
    names = disk.listdir(directory)
    swaps = [_open_swap(directory, name, config, disk, now_ms) for name in names if name.endswith(LOG + SWAP)]
    fault = next((fault for segment in swaps if (fault := _fault(segment, names, disk)) is not None), None)
    if fault is not None:
        _refuse(directory, swaps, fault, disk)
        return
    if swaps:
        low = min(segment.base_offset for segment in swaps)
        high = max(_end_offset(segment.path, disk) for segment in swaps)
        for name in names:
            offset = base_offset_of(name)
            if offset is not None and low <= offset < high and not name.endswith((SWAP, METADATA_SNAPSHOT_DELETED)):
                disk.unlink(os.path.join(directory, name))
    for name in names:
        if name.endswith(SWAP):
            path = os.path.join(directory, name)
            disk.rename(path, path.removesuffix(SWAP))


def _open_swap(directory: str, name: str, config: LogConfig, disk: Disk, now_ms: int) -> Segment:
    info = disk.stat(os.path.join(directory, name))
    size = info.size_bytes if info else 0
    offset = base_offset_of(name) or 0
    return Segment(directory, offset, config, disk=disk, now_ms=now_ms, size_bytes=size, sealed=True, suffix=SWAP)


def _fault(replacement: Segment, names: Iterable[str], disk: Disk) -> str | None:
    """Returns the error in a replacement, which is read completely; None if it can replace its sources."""
    position, next_offset = 0, replacement.base_offset
    for at, header in sound_batches(content_of(disk, replacement.path)):
        if at != position or header.base_offset < next_offset:
            break
        position, next_offset = at + header.size_bytes, header.next_offset
    if position < replacement.size_bytes or not position:  # an empty replacement may be damaged: its sources stay
        return f"{replacement.path}: damaged at byte {position}, offset {next_offset}"
    active = max(_logs(names, LOG), default=0)  # the active segment is never replaced
    if replacement.base_offset < active < next_offset:
        return f"{replacement.path}: ends at offset {next_offset}, beyond {active}, where the next segment begins"
    return None


def _refuse(directory: str, swaps: list[Segment], fault: str, disk: Disk) -> None:
    """Sets damaged replacements aside, and gives the segments that they were made from their names again, unless the
    log has other records in their place."""
    low = min(segment.base_offset for segment in swaps)
    names = disk.listdir(directory)
    ends = {base: _end_offset(os.path.join(directory, segment_file(base, LOG)), disk) for base in _logs(names, LOG)}
    for base in sorted(_logs(names, LOG + DELETED)):
        path = os.path.join(directory, segment_file(base, LOG))
        end_offset = _end_offset(path + DELETED, disk)
        before = max((end for other, end in ends.items() if other < base), default=0)
        after = min((other for other in ends if other >= base), default=MAX_LONG)
        if low <= base < max(ends, default=0) and before <= base and end_offset <= after and base not in ends:
            disk.rename(path + DELETED, path)
            ends[base] = end_offset
    disk.fsync_dir(directory)  # without the replacement, the next start would remove sources that have no names
    set_aside = RecordKeeper(directory, disk).keep(fault, swaps)
    tell("replacement of segments is not used", swaps[0].path, reason=fault, set_aside=set_aside is not None)
    for segment in swaps:
        segment.delete()


def _logs(names: Iterable[str], ending: str) -> list[int]:
    """Returns the base offsets of the segments whose file of batches has this ending."""
    return [base for name in names if name.endswith(ending) and (base := base_offset_of(name)) is not None]


def _end_offset(path: str, disk: Disk) -> int:
    """Returns the offset after the last batch of a file that can be read."""
    batches = sound_batches(content_of(disk, path))
    return max((header.next_offset for _, header in batches), default=base_offset_of(os.path.basename(path)) or 0)


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
