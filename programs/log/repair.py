"""`odradek log repair`: shows the records that recovery has set aside, restores those for which the log has room, or
removes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from programs.log.files import batches as batches_of
from protocol.errors import KafkaError
from protocol.records.batch import BatchHeader
from protocol.types import TopicPartition
from storage import checkpoint
from storage.checkpoint import CorruptCheckpoint
from storage.config import MAX_LONG, LogConfig
from storage.disk import Disk
from storage.log import Log
from storage.names import LOG, base_offset_of, parse_folder
from storage.producers.entry import Origin
from storage.recovering.kept import KeptFile, content_of, kept_files, reason_path
from storage.recovering.salvage import sound_batches
from storage.recovering.scan import OffsetBounds, order_fault
from storage.segment.batches import check

CONFIG = LogConfig(cleanup_policy="compact")
"""The config with which a log is opened here; in a compacted log offsets may be missing anywhere."""


class ReadableBatch(NamedTuple):
    """A batch that was set aside and can be read."""

    file: KeptFile
    header: BatchHeader
    content: memoryview


class EndOfLog(NamedTuple):
    """The end of a log: the next offset, and the leader epoch of the last batch."""

    offset: int
    epoch: int


class Checkpoints(NamedTuple):
    """The entries of one log in the checkpoints of its directory."""

    clean: bool
    recovery_point: int
    log_start_offset: int


class Aside:
    """The records of one partition that were set aside. Methods raise OSError, and LogDirFailure."""

    def __init__(self, disk: Disk, folder: str) -> None:
        parsed = parse_folder(os.path.basename(os.path.abspath(folder)))
        assert parsed is not None, f"{folder}: not a partition's folder"
        self.topic_partition = parsed.topic_partition
        self._disk = disk
        self._folder = folder
        self.files = kept_files(folder, disk.listdir(folder))

    def describe(self) -> Iterator[str]:
        """Yields a line for each number of set-aside files: their records, and the reason."""
        for number in sorted({file.number for file in self.files}):
            batches = [batch.header for batch in self._batches() if batch.file.number == number]
            yield f"{self._folder}: set aside {number}: {_offsets(batches)}: {self._reason(number)}"

    def preview(self) -> str:
        """Returns a line about the result that `restore` would have. Changes no file."""
        end = self._end()
        return self._text(end, self._restorable(end), "can be restored")

    def restore(self, now_ms: int) -> str:
        """Appends the batches for which the log has room, and removes the files that have no other batches. Returns a
        line about the result."""
        log = self._open(now_ms)
        end = EndOfLog(log.log_end_offset, log.last_leader_epoch)
        batches = self._restorable(end)
        # A crash from here on may leave a torn batch, which only a start after an unclean stop looks for.
        checkpoint.delete_clean_shutdown(self._disk, self._log_dir())
        for batch in batches:
            if batch.header.base_offset > log.log_end_offset:
                log.roll(now_ms, batch.header.base_offset)  # recovery looks for gaps within segments
            data = memoryview(bytearray(batch.content))
            log.append(data, leader_epoch=-1, now_ms=now_ms, origin=Origin.REPLICATION)
        log.flush(now_ms)
        log.close()
        self._write_recovery_point(log)
        restored = {(batch.file, batch.header) for batch in batches}
        left = {batch.file for batch in self._batches() if (batch.file, batch.header) not in restored}
        self._remove([file for file in self.files if file not in left])
        return self._text(end, batches, "restored")

    def discard(self) -> str:
        """Removes all set-aside files. Returns a line about the result."""
        text = f"{self._folder}: removed {_offsets([batch.header for batch in self._batches()])}"
        self._remove(self.files)
        return text

    def _batches(self) -> Iterator[ReadableBatch]:
        for file in self.files:
            content = content_of(self._disk, file.path)
            for position, header in sound_batches(content):
                yield ReadableBatch(file, header, content[position : position + header.size_bytes])

    def _in_order(self) -> Iterator[ReadableBatch]:
        """Yields the batches whose base offsets are plausible, given the file names and the following batches."""
        ends = [after.base_offset if after.number == file.number else MAX_LONG for file, after in pairwise(self.files)]
        for file, limit in zip(self.files, [*ends, MAX_LONG], strict=True):
            batches = [batch for batch in self._batches() if batch.file == file]
            next_offset = file.base_offset
            for batch, after in zip_longest(batches, batches[1:]):
                following = None if after is None else after.header.base_offset
                bounds = OffsetBounds(limit, gaps=following is not None)
                if order_fault(batch.header, next_offset, following, bounds) is None:
                    next_offset = batch.header.next_offset
                    yield batch

    def _reason(self, number: int) -> str:
        try:
            return self._disk.read_file(reason_path(self._folder, number)).decode("utf-8", "backslashreplace").strip()
        except FileNotFoundError:
            return "the file with the reason is missing"

    def _end(self) -> EndOfLog:
        """Returns the end of the log in its files, up to the first damaged batch."""
        end = EndOfLog(0, -1)
        bases = [
            (base, name)
            for name in self._disk.listdir(self._folder)
            if name.endswith(LOG) and (base := base_offset_of(name)) is not None
        ]
        for base, name in bases:
            end = EndOfLog(base, end.epoch)
            try:
                for _, header, view in batches_of(self._disk, os.path.join(self._folder, name)):
                    check(view, 0, header)
                    end = EndOfLog(header.next_offset, header.partition_leader_epoch)
            except KafkaError:
                break
        return end

    def _restorable(self, end: EndOfLog) -> list[ReadableBatch]:
        """Returns the batches that can be appended unchanged: after the log's end, in order, and without an older
        leader epoch, which would prevent followers from finding where logs differ."""
        restorable: list[ReadableBatch] = []
        for batch in sorted(self._in_order(), key=lambda batch: batch.header.base_offset):
            header = batch.header
            if header.base_offset >= end.offset and header.partition_leader_epoch >= end.epoch:
                restorable.append(batch)
                end = EndOfLog(header.next_offset, header.partition_leader_epoch)
        return restorable

    def _text(self, end: EndOfLog, batches: list[ReadableBatch], done: str) -> str:
        ends = f"{self._folder}: the log ends at offset {end.offset}"
        if not batches:
            return f"{ends}, in leader epoch {end.epoch}: no records can be restored there"
        headers = [batch.header for batch in batches]
        gap = headers[0].base_offset - end.offset
        return f"{ends}: {_offsets(headers)} {done}" + (f"; {gap} offsets before them stay missing" if gap else "")

    def _open(self, now_ms: int) -> Log:
        state = self._checkpoints()
        return Log.open(
            self._folder,
            self.topic_partition,
            CONFIG,
            disk=self._disk,
            now_ms=now_ms,
            clean=state.clean,
            recovery_point=state.recovery_point,
            log_start_offset=state.log_start_offset,
        )

    def _checkpoints(self) -> Checkpoints:
        log_dir = self._log_dir()
        points, starts = self._offsets_in(checkpoint.RECOVERY_POINTS), self._offsets_in(checkpoint.LOG_START_OFFSETS)
        clean = checkpoint.has_clean_shutdown(self._disk, log_dir)
        return Checkpoints(clean, points.get(self.topic_partition, 0), starts.get(self.topic_partition, 0))

    def _offsets_in(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self._disk, os.path.join(self._log_dir(), name))
        except CorruptCheckpoint:
            return {}

    def _write_recovery_point(self, log: Log) -> None:
        """Moves the recovery point past the restored records; otherwise recovery would set them aside again, because of
        the gap before them."""
        points = self._offsets_in(checkpoint.RECOVERY_POINTS)
        points[self.topic_partition] = log.checkpointed_recovery_point
        checkpoint.write_offsets(self._disk, os.path.join(self._log_dir(), checkpoint.RECOVERY_POINTS), points)

    def _log_dir(self) -> str:
        return os.path.dirname(os.path.abspath(self._folder))

    def _remove(self, files: list[KeptFile]) -> None:
        """Removes files, and the reason files of numbers that have no file left."""
        for file in files:
            self._disk.unlink(file.path)
        numbers_left = {file.number for file in self.files if file not in files}
        for number in {file.number for file in files} - numbers_left:
            self._disk.unlink(reason_path(self._folder, number), missing_ok=True)
        self._disk.fsync_dir(self._folder)
        self.files = [file for file in self.files if file not in files]


def _offsets(headers: list[BatchHeader]) -> str:
    """Returns a text with the number of records in the batches and their range of offsets."""
    records = sum(header.records_count for header in headers)
    text = f"{records} record{'' if records == 1 else 's'}"
    if not headers:
        return text
    first, last = min(header.base_offset for header in headers), max(header.last_offset for header in headers)
    return f"{text} of offsets {first} to {last}"
