"""A log directory of the broker: its checkpoints, and the report of opening it."""

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
"""Folders in a log directory that Kafka or the file system creates and that are not partitions."""


class DirReport(NamedTuple):
    """The report of opening a log directory, for the broker's log."""

    path: str
    clean: bool
    """True if the broker's last stop was clean."""
    logs: int
    warnings: tuple[str, ...]
    """Unreadable checkpoints, and folders that belong to no partition."""


class ReplicaSize(NamedTuple):
    """A partition's log in a directory, as DescribeLogDirs reports it."""

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
        """The error that took the directory offline; None while it is online."""
        self.clean = False
        self.stale: set[TopicPartition] = set()
        """Deleted partitions that are still in the checkpoints."""
        self.warnings: list[str] = []
        self._disk = disk
        self._writing = Lock()
        self._cleaned: dict[TopicPartition, int] | None = None  # as in the file
        self._high_watermarks: dict[TopicPartition, int] | None = None  # as in the file

    @property
    def online(self) -> bool:
        """True while the directory is in use."""
        return self.error is None

    def open(self) -> list[tuple[str, Folder]]:
        """Creates the directory if needed, removes the clean-shutdown marker, and returns the partitions' folders."""
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
        """Returns the recovery point of each log; empty if the file is damaged."""
        return self._offsets(checkpoint.RECOVERY_POINTS)

    def log_start_offsets(self) -> dict[TopicPartition, int]:
        """Returns the log start offsets in the checkpoint; empty if the file is damaged."""
        return self._offsets(checkpoint.LOG_START_OFFSETS)

    def cleaned_offsets(self) -> dict[TopicPartition, int]:
        """Returns the offset up to which each compacted log is clean; empty if the file is damaged, and then the logs
        are cleaned again."""
        return self._offsets(checkpoint.CLEANED_OFFSETS)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Returns the checkpointed high watermark of each log; empty if the file is damaged."""
        return self._offsets(checkpoint.HIGH_WATERMARKS)

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self._disk, os.path.join(self.path, name))
        except CorruptCheckpoint as error:
            self.warnings.append(str(error))
            return {}

    def write_checkpoints(self, logs_in: Callable[[str], Iterable[Log]]) -> None:
        """Writes the recovery points, log start offsets and cleaned offsets. For any thread.

        Kafka omits a log start offset that is the first segment's base offset. Odradek writes it, because a power loss
        can bring deleted segments back if their removal is not on the device.
        """
        with self._writing:
            gone = self.stale.copy()  # copied first: a log that is deleted meanwhile must stay in `stale`
            logs = list(logs_in(self.path))
            points = {log.topic_partition: log.checkpointed_recovery_point for log in logs}
            starts = {log.topic_partition: log.log_start_offset for log in logs if log.log_start_offset}
            # Starts first: a log start that moves up takes the recovery point over batches that were not flushed.
            self._write(checkpoint.LOG_START_OFFSETS, starts)
            self._write(checkpoint.RECOVERY_POINTS, points)
            self._write_cleaned(logs)
            self.stale -= gone

    def _write_cleaned(self, logs: Iterable[Log]) -> None:
        """Writes the cleaner's checkpoint, if it has changed: most brokers clean seldom, and many have no compacted
        log."""
        cleaned = {log.topic_partition: log.cleaned_to for log in logs if log.cleaned_to is not None}
        if self._cleaned is None:
            self._cleaned = self.cleaned_offsets()
        if cleaned != self._cleaned:
            self._write(checkpoint.CLEANED_OFFSETS, cleaned)
            self._cleaned = cleaned

    def write_high_watermarks(self, logs_in: Callable[[str], Iterable[Log]]) -> None:
        """Writes the high watermarks, if they have changed. For any thread."""
        with self._writing:
            offsets = {log.topic_partition: log.high_watermark for log in logs_in(self.path)}
            if offsets != self._high_watermarks:
                self._write(checkpoint.HIGH_WATERMARKS, offsets)
                self._high_watermarks = offsets

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        checkpoint.write_offsets(self._disk, os.path.join(self.path, name), offsets)

    def mark_clean(self, broker_epoch: int) -> None:
        """Writes the clean-shutdown marker. All logs must be closed; the next start then skips recovery."""
        checkpoint.write_clean_shutdown(self._disk, self.path, broker_epoch)

    def space(self) -> Space:
        """Returns the size of the directory's volume, and the free space on it."""
        return self._disk.space(self.path)
