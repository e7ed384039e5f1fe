"""Opens the logs in the log directories, in several threads after a crash, and finds them by partition.

The start-up part of Kafka class LogManager.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from protocol.types import TopicPartition, Uuid
from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import Report, StorageError, unheard
from storage.log import PRODUCER_EXPIRATION_MS, Log
from storage.log_dir import DirReport, LogDir, ReplicaSize
from storage.names import Folder, FolderKind

T = TypeVar("T")
R = TypeVar("R")

ConfigOf = Callable[[str], LogConfig]
"""Returns the config of a topic by its name."""

Progress = Callable[[str, int, int], None]
"""Called with (log directory, logs opened, logs in all) after each log that is opened."""


class DuplicateLog(Exception):
    """Two directories have a log of the same partition: the operator must remove the wrong log."""


class Doomed(NamedTuple):
    """A deleted log's folder, to be removed from `due_ms` on."""

    due_ms: int
    directory: str


def in_threads(threads: int, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Yields the results of `work` for the items, in order. Starts no other item after the first failure."""
    if threads < 2 or len(items) < 2:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads, "logs")
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


class LogTable:
    """The logs by partition, and the log directories."""

    __slots__ = (
        "_doomed",
        "_futures",
        "_logs",
        "_recovery_threads",
        "_unique",
        "dirs",
        "disk",
        "on_failure",
        "producer_expiration_ms",
        "strays",
        "verification_enabled",
    )

    def __init__(
        self,
        paths: Sequence[str],
        *,
        disk: Disk,
        unique: Callable[[], str],
        recovery_threads: int = 2,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        verification_enabled: bool = False,
    ) -> None:
        """`unique` returns 32 new hex digits at each call, for the names of deleted and future logs."""
        self.disk = disk
        self.dirs = {path: LogDir(path, disk=disk) for path in map(os.path.abspath, paths)}
        self.strays: dict[str, TopicPartition] = {}
        """Folders of partitions that are not in the cluster's metadata, renamed to `-stray`."""
        self.producer_expiration_ms = producer_expiration_ms
        self.verification_enabled = verification_enabled
        self.on_failure: Report = unheard
        """Callback for every failure of a directory, called in the thread that detects it. The owner sets it."""
        self._unique = unique
        self._recovery_threads = recovery_threads
        self._logs: dict[TopicPartition, Log] = {}
        self._futures: dict[TopicPartition, Log] = {}
        self._doomed: list[Doomed] = []

    # Opening

    def load(self, config_of: ConfigOf, now_ms: int, progress: Progress | None = None) -> list[DirReport]:
        """Opens all logs. After an unclean stop, recovers them first, in several threads.

        A directory that fails goes offline, with its error in `LogDir.error`. Directories that have an error already
        are skipped. Raises DuplicateLog.
        """
        return [self._load_dir(log_dir, config_of, now_ms, progress) for log_dir in self.online_dirs()]

    def _load_dir(self, log_dir: LogDir, config_of: ConfigOf, now_ms: int, progress: Progress | None) -> DirReport:
        count = 0
        try:
            folders = log_dir.open()
            points, starts, cleaned = log_dir.recovery_points(), log_dir.log_start_offsets(), log_dir.cleaned_offsets()
            high_watermarks = log_dir.high_watermarks()
            to_open = [entry for entry in folders if self._is_wanted(entry, config_of, now_ms)]

            def open_one(entry: tuple[str, Folder]) -> Log:
                path, (topic_partition, _) = entry
                return self._open(
                    path,
                    topic_partition,
                    config_of(topic_partition.topic),
                    now_ms,
                    clean=log_dir.clean,
                    recovery_point=points.get(topic_partition, 0),
                    log_start_offset=starts.get(topic_partition, 0),
                    high_watermark=high_watermarks.get(topic_partition, 0),
                )

            threads = 1 if log_dir.clean else self._recovery_threads
            for (_, folder), log in zip(to_open, in_threads(threads, open_one, to_open), strict=True):
                log.cleaned_to = cleaned.get(folder.topic_partition)
                self._add(folder, log)
                count += 1
                if progress is not None:
                    progress(log_dir.path, count, len(to_open))
            if any(points.get(log.topic_partition, 0) > log.log_end_offset for log in self.in_dir(log_dir.path)):
                log_dir.write_checkpoints(self.in_dir)  # otherwise a crash would make new appends look flushed
        except OSError as error:
            self.fail(log_dir.path, error)
        except StorageError as error:
            self.fail(log_dir.path, error)
        return DirReport(log_dir.path, log_dir.clean, count, tuple(log_dir.warnings))

    def _is_wanted(self, entry: tuple[str, Folder], config_of: ConfigOf, now_ms: int) -> bool:
        """True if the folder's log must be opened. Registers the folders of deleted and stray logs."""
        path, (topic_partition, kind) = entry
        if kind is FolderKind.DELETE:
            self._doomed.append(Doomed(now_ms + config_of(topic_partition.topic).file_delete_delay_ms, path))
        elif kind is FolderKind.STRAY:
            self.strays[path] = topic_partition
        return kind in (FolderKind.CURRENT, FolderKind.FUTURE)

    def _open(
        self,
        path: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        now_ms: int,
        *,
        topic_id: Uuid | None = None,
        clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
    ) -> Log:
        return Log.open(
            path,
            topic_partition,
            config,
            disk=self.disk,
            now_ms=now_ms,
            topic_id=topic_id,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            high_watermark=high_watermark,
            producer_expiration_ms=self.producer_expiration_ms,
            verification_enabled=self.verification_enabled,
            report=lambda failed: self.on_failure(failed),
        )

    def _add(self, folder: Folder, log: Log) -> None:
        logs = self._futures if folder.kind is FolderKind.FUTURE else self._logs
        other = logs.setdefault(folder.topic_partition, log)
        if other is not log:
            raise DuplicateLog(
                f"{folder.topic_partition} is both in {other.directory} and in {log.directory}: "
                "remove the one in the directory that failed when the broker moved it"
            )

    # Looking

    def __iter__(self) -> Iterator[Log]:
        return iter(self._logs.values())

    def __len__(self) -> int:
        return len(self._logs)

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """Returns the partition's log, or None."""
        return self._logs.get(topic_partition)

    def future(self, topic_partition: TopicPartition) -> Log | None:
        """Returns the partition's future log, to which another directory's log is being moved, or None."""
        return self._futures.get(topic_partition)

    def online_dirs(self) -> list[LogDir]:
        """Returns the online directories. A broker without an online directory stops."""
        return [log_dir for log_dir in self.dirs.values() if log_dir.online]

    def in_dir(self, path: str) -> list[Log]:
        """Returns all logs in a directory, future logs included."""
        return [log for log in self._all() if log.log_dir == path]

    def sizes(self, path: str) -> list[ReplicaSize]:
        """Returns the logs in a directory and their sizes."""
        return [
            ReplicaSize(log.topic_partition, log.size_bytes, log.log_end_offset, log in self._futures.values())
            for log in self.in_dir(path)
        ]

    def _all(self) -> list[Log]:
        """Returns a copy, because worker threads call this while logs are created and deleted."""
        return [*self._logs.values(), *self._futures.values()]

    def fail(self, path: str, error: Exception) -> list[TopicPartition]:
        """Takes a directory offline until the next start; returns the partitions whose logs are offline with it."""
        log_dir = self.dirs[path]
        log_dir.error = error
        gone = []
        for logs in (self._logs, self._futures):
            for topic_partition in [key for key, log in logs.items() if log.log_dir == path]:
                logs.pop(topic_partition).segments.release()
                gone.append(topic_partition)
        self._doomed = [doomed for doomed in self._doomed if os.path.dirname(doomed.directory) != path]
        return gone
