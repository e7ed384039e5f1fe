"""Replaces segments by the cleaned segment made from them. Kafka class LocalLog (replaceSegments)."""

from __future__ import annotations

import os

from storage.cleaner.job import CleanedSegment
from storage.disk import Disk
from storage.local_log import LocalLog
from storage.names import CLEANED, INDEXES, LOG, SWAP, segment_file
from storage.segment.segment import Segment


def swap_in(log: LocalLog, cleaned: CleanedSegment, *, disk: Disk, now_ms: int) -> bool:
    """Replaces segments by the cleaned segment made from them; True on success. Raises LogDirFailure.

    If the segments have changed since, deletes the cleaned segment and returns False. A crash in between leaves the old
    segments, or a `.swap` file, with which the next start completes the swap.
    """
    with log.failing("swapping a cleaned segment into"):
        return _swap_in(log, cleaned, disk, now_ms)


def _swap_in(log: LocalLog, cleaned: CleanedSegment, disk: Disk, now_ms: int) -> bool:
    """Does the work of `swap_in`. Raises OSError.

    The order of the renames makes it safe: once the cleaned segment is a `.swap`, a start completes the swap; it loses
    that suffix only when no old segment has its own name. The old segments' files stay as `.deleted` for
    file.delete.delay.ms, for their readers.
    """
    old = _unchanged(log, cleaned)
    if old is None:
        for path in cleaned_files(log.directory, cleaned.base_offset):
            disk.unlink(path, missing_ok=True)
        return False
    fresh = Segment(
        log.directory,
        cleaned.base_offset,
        log.config,
        disk=disk,
        now_ms=old[0].created_ms,
        size_bytes=cleaned.size_bytes,
        sealed=True,
        suffix=CLEANED,
    )
    fresh.rename(SWAP)
    for segment in old:
        snapshot = None
        if segment.base_offset != cleaned.base_offset:
            snapshot = log.producer_state.set_snapshot_aside(segment.base_offset)
        log.segments.set_aside(segment, snapshot, now_ms + log.config.file_delete_delay_ms)
    fresh.rename("")
    log.segments.replace(old, [fresh])
    return True


def _unchanged(log: LocalLog, cleaned: CleanedSegment) -> list[Segment] | None:
    """Returns the segments that the cleaned segment was made from; None if retention or truncation has changed them
    since."""
    active = log.segments.active
    present = {segment.base_offset: segment for segment in log.segments if segment is not active}
    old = [present.get(source.base_offset) for source in cleaned.replaces]
    unchanged = [segment for segment in old if segment is not None]
    sizes = [source.size_bytes for source in cleaned.replaces]
    return unchanged if [segment.size_bytes for segment in unchanged] == sizes else None


def cleaned_files(directory: str, base_offset: int) -> list[str]:
    """Returns the paths of a cleaned segment's files before the swap."""
    return [os.path.join(directory, segment_file(base_offset, end) + CLEANED) for end in (LOG, *INDEXES)]
