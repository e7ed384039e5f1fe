"""Records that recovery took out of a log although they can be read: kept beside it until the operator decides.

`set-aside-<number>.<base offset>.log.kept` is a segment, `set-aside-<number>.<offset>.rest.log.kept` what a segment had
from this offset on, its damaged batch first. Files of one number were set aside together, for the reason in
`set-aside-<number>.reason.kept`. No broker opens, renames or deletes such files, nor does Apache Kafka: they go with
the partition's folder, or by `odradek log repair`.
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
"""How much of a segment's end is copied in one go."""

KEPT = ".kept"

_NAME = re.compile(r"set-aside-([0-9]{1,9})\.(?:([0-9]{20})(?:\.rest)?\.log|reason)\.kept")


class Kept(NamedTuple):
    """The records that one recovery has set aside."""

    number: int
    records: int
    """How many records can be read."""
    bytes: int
    """The size of the files, with what can't be read of them."""


class SegmentEnd(NamedTuple):
    """A segment from a position on."""

    segment: Segment
    position: int
    offset: int
    """The next offset there."""


class KeptFile(NamedTuple):
    """A file of batches that were set aside."""

    path: str
    number: int
    base_offset: int


def kept_files(directory: str, names: Iterable[str]) -> list[KeptFile]:
    """Returns the files of batches among the names of a partition's folder, oldest first."""
    matches = [match for name in names if (match := _NAME.fullmatch(name)) is not None and match[2]]
    files = [KeptFile(os.path.join(directory, match[0]), int(match[1]), int(match[2])) for match in matches]
    return sorted(files, key=lambda file: (file.number, file.base_offset))


def reason_path(directory: str, number: int) -> str:
    """Returns the path of the text that says why files were set aside."""
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
    """Sets aside what can be read of the end of a segment, and of whole segments. Methods raise OSError."""

    def __init__(self, directory: str, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk

    def keep(self, reason: str, later: Sequence[Segment], end: SegmentEnd | None = None) -> Kept | None:
        """Set aside the `later` segments, and a copy of the end of the one before them.

        Returns None, and leaves all files as they are, if nothing of it can be read. The segments are renamed newest
        first: if this is cut short, the log has no gap.
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
        """Returns how many records can be read."""
        return sum(header.records_count for _, header in sound_batches(self._content(end)))

    def _content(self, end: SegmentEnd) -> memoryview:
        return content_of(self._disk, end.segment.path)[end.position : end.segment.size_bytes]

    def _next_number(self) -> int:
        matches = (_NAME.fullmatch(name) for name in self._disk.listdir(self._directory))
        return 1 + max((int(match[1]) for match in matches if match is not None), default=0)

    def _path(self, number: int, offset: int, kind: str = "") -> str:
        return os.path.join(self._directory, f"set-aside-{number}.{segment_file(offset, kind + LOG)}{KEPT}")

    def _copy(self, end: SegmentEnd, path: str) -> int:
        """Returns how many bytes were copied."""
        content = self._content(end)
        handle = self._disk.open(path, create=True)
        try:
            for start in range(0, len(content), COPY_BYTES):
                self._disk.pwritev(handle, [content[start : start + COPY_BYTES]], start)
            self._disk.fsync(handle)
        finally:
            self._disk.close(handle)
        return len(content)
