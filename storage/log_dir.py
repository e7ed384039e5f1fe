"""One of the broker's log directories: its checkpoints, and the report of opening it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

from protocol.types import TopicPartition
from storage import checkpoint
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk, Space
from storage.log import Log
from storage.names import METADATA_TOPIC, Folder, parse_folder

OTHER_FOLDERS = frozenset({"remote-log-index-cache", "lost+found"})
"""Folders that Kafka or the file system puts beside the partitions'."""


class DirReport(NamedTuple):
    """The report of opening a log directory, for the broker's log."""

    path: str
    clean: bool
    """True when the broker had been stopped in order."""
    logs: int
    warnings: tuple[str, ...]
    """Checkpoints that could not be read, folders of no partition."""


class ReplicaSize(NamedTuple):
    """One partition's log in a directory, as DescribeLogDirs reports it."""

    topic_partition: TopicPartition
    size_bytes: int
    log_end_offset: int
    is_future: bool


class LogDir:
    """A directory of partitions' folders. Methods raise OSError."""

    __slots__ = ("_cleaned", "_disk", "_high_watermarks", "_writing", "clean", "error", "path", "stale", "warnings")

    def __init__(self, path: str, *, disk: Disk) -> None:
        self.path = path
        self.error: Exception | None = None
        """Why it is offline; None while it is not."""
        self.clean = False
        self.stale: set[TopicPartition] = set()
        """Partitions that the checkpoints still speak of, though their logs are gone."""
        self.warnings: list[str] = []
        self._disk = disk
        self._writing = Lock()
        self._cleaned: dict[TopicPartition, int] | None = None  # as the file has it
        self._high_watermarks: dict[TopicPartition, int] | None = None  # as the file has it

    @property
    def online(self) -> bool:
        """True while the directory is in use."""
        return self.error is None

    def open(self) -> list[tuple[str, Folder]]:
        """Make it if need be, take the clean-shutdown marker, and list the partitions' folders."""
        disk = self._disk
        if not disk.exists(self.path):
            disk.mkdir(self.path, parents=True)
            disk.fsync_dir(os.path.dirname(self.path))
        self.clean = checkpoint.has_clean_shutdown(disk, self.path)
        checkpoint.delete_clean_shutdown(disk, self.path)
        return list(self._folders())

    def _folders(self) -> Iterable[tuple[str, Folder]]:
        for name in self._disk.listdir(self.path):
            path = os.path.join(self.path, name)
            info = self._disk.stat(path)
            if info is None or not info.is_directory or name in OTHER_FOLDERS:
                continue
            folder = parse_folder(name)
            if folder is None:
                self.warnings.append(f"{path}: not a folder of a partition")
            elif folder.topic_partition.topic != METADATA_TOPIC:
                yield path, folder

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Returns the offset up to which each log is known to be on the device; empty when the file is damaged."""
        return self._offsets(checkpoint.RECOVERY_POINTS)

    def log_start_offsets(self) -> dict[TopicPartition, int]:
        """Returns the log start offsets that the checkpoint has."""
        return self._offsets(checkpoint.LOG_START_OFFSETS)

    def cleaned_offsets(self) -> dict[TopicPartition, int]:
        """Returns the offset up to which each compacted log is clean; empty when the file is damaged: they are cleaned
        anew."""
        return self._offsets(checkpoint.CLEANED_OFFSETS)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Returns the checkpointed high watermark of each log; empty when the file is damaged."""
        return self._offsets(checkpoint.HIGH_WATERMARKS)

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self._disk, os.path.join(self.path, name))
        except CorruptCheckpoint as error:
            self.warnings.append(str(error))
            return {}

    def write_checkpoints(self, logs_in: Callable[[str], Iterable[Log]]) -> None:
        """Write recovery points, log start offsets, and how far compaction came. For any thread.

        Kafka leaves a start out that its segment's name tells; but deleted segments come back when the power is lost
        before their removal is on the device.
        """
        with self._writing:
            gone = self.stale.copy()  # before the logs are looked at, so that none is forgotten that goes meanwhile
            logs = list(logs_in(self.path))
            points = {log.topic_partition: log.checkpointed_recovery_point for log in logs}
            starts = {log.topic_partition: log.log_start_offset for log in logs if log.log_start_offset}
            # In this order: a start that moves up takes the recovery point with it, over batches that were not flushed.
            self._write(checkpoint.LOG_START_OFFSETS, starts)
            self._write(checkpoint.RECOVERY_POINTS, points)
            self._write_cleaned(logs)
            self.stale -= gone

    def _write_cleaned(self, logs: Iterable[Log]) -> None:
        """Write the cleaner's checkpoint, only when it has changed: most brokers clean seldom, and many have no
        compacted log at all."""
        cleaned = {log.topic_partition: log.cleaned_to for log in logs if log.cleaned_to is not None}
        if self._cleaned is None:
            self._cleaned = self.cleaned_offsets()
        if cleaned != self._cleaned:
            self._write(checkpoint.CLEANED_OFFSETS, cleaned)
            self._cleaned = cleaned

    def write_high_watermarks(self, logs_in: Callable[[str], Iterable[Log]]) -> None:
        """Write the high watermarks, only when they have changed. For any thread."""
        with self._writing:
            offsets = {log.topic_partition: log.high_watermark for log in logs_in(self.path)}
            if offsets != self._high_watermarks:
                self._write(checkpoint.HIGH_WATERMARKS, offsets)
                self._high_watermarks = offsets

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        checkpoint.write_offsets(self._disk, os.path.join(self.path, name), offsets)

    def mark_clean(self, broker_epoch: int) -> None:
        """Write the clean-shutdown marker: everything has been closed, and the next start need not check anything."""
        checkpoint.write_clean_shutdown(self._disk, self.path, broker_epoch)

    def space(self) -> Space:
        """Size of its volume, and room on it."""
        return self._disk.space(self.path)
