"""Readable records that recovery removed from a log: files in the partition's folder until the operator decides.

`set-aside-<number>.<base offset>.log.kept` is a segment. `set-aside-<number>.<offset>.rest.log.kept` is the end of a
segment from this offset on, which begins with the damaged batch. Files with the same number were set aside together;
`set-aside-<number>.reason.kept` has the reason. Neither Odradek's broker nor Apache Kafka opens, renames or deletes
such files; `odradek log repair` or the deletion of the partition's folder removes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from storage.disk import Disk
from storage.names import LOG, segment_file
from storage.recovering.salvage import sound_batches
from storage.segment.segment import Segment

COPY_BYTES = 1 << 20
"""Bytes of a segment's end that are copied in a write."""

KEPT = ".kept"

_NAME = re.compile(r"set-aside-([0-9]{1,9})\.(?:([0-9]{20})(?:\.rest)?\.log|reason)\.kept")


class Kept(NamedTuple):
    """The records that a recovery has set aside."""

    number: int
    records: int
    """Number of readable records."""
    bytes: int
    """The size of the files, including unreadable bytes."""


class SegmentEnd(NamedTuple):
    """The end of a segment, from a position on."""

    segment: Segment
    position: int
    offset: int
    """The next offset at this position."""


class KeptFile(NamedTuple):
    """A file of batches that recovery has set aside."""

    path: str
    number: int
    base_offset: int


def kept_files(directory: str, names: Iterable[str]) -> list[KeptFile]:
    """Returns the set-aside files of batches among the names in a partition's folder, oldest first."""
    matches = [match for name in names if (match := _NAME.fullmatch(name)) is not None and match[2]]
    files = [KeptFile(os.path.join(directory, match[0]), int(match[1]), int(match[2])) for match in matches]
    return sorted(files, key=lambda file: (file.number, file.base_offset))


def reason_path(directory: str, number: int) -> str:
    """Returns the path of the file with the reason for setting files aside."""
    return os.path.join(directory, f"set-aside-{number}.reason{KEPT}")


def content_of(disk: Disk, path: str) -> memoryview:
    """Returns the bytes of a file. Raises OSError."""
    handle = disk.open(path, writable=False)
    try:
        size = disk.size(handle)
        return disk.mmap(handle, size) if size else memoryview(b"")
    finally:
        disk.close(handle)


class RecordKeeper:
    """Sets aside the readable records of a segment's end and of whole segments. Methods raise OSError."""

    def __init__(self, directory: str, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk

    def keep(self, reason: str, later: Sequence[Segment], end: SegmentEnd | None = None) -> Kept | None:
        """Sets aside the `later` segments, and a copy of the end of the segment before them.

        Returns None, and changes no file, if no record is readable. Renames the segments newest first, so that a crash
        in between leaves no gap in the log.
        """
        ends = [SegmentEnd(segment, 0, segment.base_offset) for segment in later]
        readable = [(whole, records) for whole in ends if (records := self._records(whole))]
        records_at_end = 0 if end is None else self._records(end)
        if not readable and not records_at_end:
            return None
        number = self._next_number()
        self._disk.write_file(reason_path(self._directory, number), f"{reason}\n".encode())
        size = 0
        if end is not None and records_at_end:
            size = self._copy(end, self._path(number, end.offset, ".rest"))
        for whole, _ in reversed(readable):
            size += whole.segment.size_bytes
            self._disk.rename(whole.segment.path, self._path(number, whole.offset))
        self._disk.fsync_dir(self._directory)
        return Kept(number, records_at_end + sum(records for _, records in readable), size)

    def _records(self, end: SegmentEnd) -> int:
        """Returns the number of readable records."""
        return sum(header.records_count for _, header in sound_batches(self._content(end)))

    def _content(self, end: SegmentEnd) -> memoryview:
        return content_of(self._disk, end.segment.path)[end.position : end.segment.size_bytes]

    def _next_number(self) -> int:
        matches = (_NAME.fullmatch(name) for name in self._disk.listdir(self._directory))
        return 1 + max((int(match[1]) for match in matches if match is not None), default=0)

    def _path(self, number: int, offset: int, kind: str = "") -> str:
        return os.path.join(self._directory, f"set-aside-{number}.{segment_file(offset, kind + LOG)}{KEPT}")

    def _copy(self, end: SegmentEnd, path: str) -> int:
        """Copies a segment's end; returns the number of bytes."""
        content = self._content(end)
        handle = self._disk.open(path, create=True)
        try:
            for start in range(0, len(content), COPY_BYTES):
                self._disk.pwritev(handle, [content[start : start + COPY_BYTES]], start)
            self._disk.fsync(handle)
        finally:
            self._disk.close(handle)
        return len(content)
