"""The segments of a log, ordered by offset, and the files of removed segments. Kafka class LogSegments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import NamedTuple

from storage.disk import Disk
from storage.names import DELETED
from storage.segment.segment import Segment


class SetAside(NamedTuple):
    """Files of a removed segment, which readers may still use. They are deleted from `due_ms` on."""

    due_ms: int
    segment: Segment | None
    snapshot: str | None


class Segments:
    """A log's segments. There is always a last segment, `active`, which gets the appends."""

    __slots__ = ("_bases", "_disk", "_segments", "_set_aside", "active", "directory")

    def __init__(self, directory: str, segments: list[Segment], *, disk: Disk) -> None:
        """Takes the segments in a folder, or a new log's first segment, ordered by base offset."""
        self.directory = directory
        self._disk = disk
        self._set_aside: list[SetAside] = []
        self._become(segments)

    def _become(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def base_offsets(self) -> list[int]:
        """The base offset of every segment."""
        return self._bases

    def containing(self, offset: int) -> Segment:
        """Returns the segment that contains the offset, or the first segment for an offset before it."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0)]

    def since(self, offset: int) -> list[Segment]:
        """Returns the segment that contains the offset, and all later segments."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0) :]

    def end_of(self, segment: Segment, log_end_offset: int) -> int:
        """Returns the base offset of the next segment, or the log end offset."""
        n = bisect_right(self._bases, segment.base_offset)
        return self._bases[n] if n < len(self._bases) else log_end_offset

    def append(self, segment: Segment) -> None:
        """Appends a new active segment."""
        self._become([*self._segments, segment])

    def replace(self, old: Collection[Segment], new: Collection[Segment]) -> None:
        """Replaces segments by others, as after compaction or truncation. At least one segment must remain."""
        remaining = [segment for segment in self._segments if segment not in old]
        self._become(sorted([*remaining, *new], key=lambda segment: segment.base_offset))

    def set_aside(self, segment: Segment, snapshot: str | None, due_ms: int) -> None:
        """Renames a removed segment's files to `.deleted`; `delete_expired` deletes them later. Raises OSError."""
        segment.rename(DELETED)
        self._set_aside.append(SetAside(due_ms, segment, snapshot))

    def delete_expired(self, now_ms: int) -> int:
        """Deletes the files that are due; returns the number of removed segments. May run in a worker thread. Raises
        OSError."""
        due = [entry for entry in self._set_aside if entry.due_ms <= now_ms]
        for entry in due:
            if entry.segment is not None:
                entry.segment.delete()
            if entry.snapshot is not None:
                self._disk.unlink(entry.snapshot, missing_ok=True)
            self._set_aside.remove(entry)
        return len(due)

    @property
    def next_deletion_ms(self) -> int | None:
        """The time at which `delete_expired` next deletes files; None without any."""
        return min((entry.due_ms for entry in self._set_aside), default=None)

    @property
    def have_unsynced_indexes(self) -> bool:
        """True if a sealed segment's indexes are not on the device, although its batches may be."""
        return len(self._segments) > 1 and self._segments[-2].indexes_unsynced

    def trusted_up_to(self, offset: int) -> int:
        """Returns the offset up to which recovery may trust the files, if batches up to `offset` are on the device. The
        end of a segment whose indexes are not on the device is excluded, even if the segment is sealed or truncated
        there later.
        """
        unsynced = _unsynced(self._segments)
        trusted = offset - (offset > unsynced[0].base_offset)
        return trusted if len(unsynced) == 1 else min(trusted, unsynced[1].base_offset - 1)

    def flush(self, recovery_point: int, end_offset: int) -> None:
        """Flushes the batches between these offsets to the device. Raises OSError.

        Meanwhile, other threads may roll, delete and replace segments.
        """
        new_names = False
        for segment in self._to_flush(recovery_point):
            if segment.base_offset >= end_offset:
                break
            try:
                new_names |= segment.flush() or segment.base_offset >= recovery_point
            except FileNotFoundError:
                if segment in self._segments:
                    raise
        if new_names:
            self._disk.fsync_dir(self.directory)

    def _to_flush(self, recovery_point: int) -> list[Segment]:
        """Returns the segments after the recovery point, and the segments whose indexes are not on the device."""
        since, unsynced = self.since(recovery_point), _unsynced(self._segments)
        return since if len(since) > len(unsynced) else unsynced

    def close(self, *, sync: bool = True) -> bool:
        """Writes all indexes and closes all files; True if some files may be new. Raises OSError."""
        has_new_files = False
        for segment in self._segments:
            has_new_files |= segment.close(sync=sync)
        return has_new_files

    def release(self) -> None:
        """Closes all files without writing, as after a failure of the disk."""
        for segment in self._segments:
            segment.release()

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self.directory = directory
        for segment in self._segments:
            segment.relocate(directory)
        for entry in self._set_aside:
            if entry.segment is not None:
                entry.segment.relocate(directory)


def _unsynced(segments: list[Segment]) -> list[Segment]:
    """Returns the last segments whose indexes are not on the device: the active segment, and the segments before it
    that were sealed since the last flush."""
    n = len(segments) - 1
    while n and segments[n - 1].indexes_unsynced:
        n -= 1
    return segments[n:]
