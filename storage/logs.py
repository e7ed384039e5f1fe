"""All logs of the broker, over its log directories. Kafka class LogManager.

For the event loop, but for what may take long and runs in worker threads beside it: `load`, `flush_due`,
`write_checkpoints`, `delete_expired`, `close`. A directory that fails goes offline with its logs, the others serve on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid
from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import LogDirFailure, LogDirFull, failing
from storage.log import PRODUCER_EXPIRATION_MS, Log
from storage.log_dir import DirReport, LogDir, ReplicaSize
from storage.names import Folder, FolderKind, folder_name, marked_folder_name
from storage.producer_entry import Origin
from storage.retention import Deletable

ConfigOf = Callable[[str], LogConfig]
"""The config of a topic, by name."""

Progress = Callable[[str, int, int], None]
"""Told (log directory, logs opened, logs in all) after each log that is opened."""

COPY_BYTES = 1 << 20
"""How much of a log moves to its future place in one step."""


class DuplicateLog(Exception):
    """Two directories have a log of the same partition: someone must say which one is right."""


class Doomed(NamedTuple):
    """A deleted log's folder, to be removed from then on."""

    due_ms: int
    directory: str


class Logs:
    """The logs by partition. `load` first, `close` at the end; methods raise LogDirFailure."""

    __slots__ = (
        "_doomed",
        "_futures",
        "_logs",
        "_recovery_threads",
        "_unique",
        "dirs",
        "disk",
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
        """`unique` gives 32 hex digits for the name of a deleted or future log's folder, other ones at each call."""
        self.disk = disk
        self.dirs = {path: LogDir(path, disk=disk) for path in map(os.path.abspath, paths)}
        self.strays: dict[str, TopicPartition] = {}
        """Folders set aside because the cluster knows nothing of them."""
        self.producer_expiration_ms = producer_expiration_ms
        self.verification_enabled = verification_enabled
        self._unique = unique
        self._recovery_threads = recovery_threads
        self._logs: dict[TopicPartition, Log] = {}
        self._futures: dict[TopicPartition, Log] = {}
        self._doomed: list[Doomed] = []

    # Opening

    def load(self, config_of: ConfigOf, now_ms: int, progress: Progress | None = None) -> list[DirReport]:
        """Open all logs. After an unclean stop, each is checked first, several at a time.

        A directory that fails is offline afterwards: look at `LogDir.error`. Raises DuplicateLog.
        """
        return [self._load_dir(log_dir, config_of, now_ms, progress) for log_dir in self.dirs.values()]

    def _load_dir(self, log_dir: LogDir, config_of: ConfigOf, now_ms: int, progress: Progress | None) -> DirReport:
        count = 0
        try:
            folders = log_dir.open()
            points, starts = log_dir.recovery_points(), log_dir.log_start_offsets()
            wanted = [entry for entry in folders if self._is_wanted(entry, config_of, now_ms)]

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
                )

            for (_, folder), log in zip(wanted, self._each(open_one, wanted, log_dir.clean), strict=True):
                self._add(folder, log)
                count += 1
                if progress is not None:
                    progress(log_dir.path, count, len(wanted))
        except OSError as error:
            self.fail(log_dir.path, error)
        except (LogDirFailure, LogDirFull) as error:
            self.fail(log_dir.path, error)
        return DirReport(log_dir.path, log_dir.clean, count, tuple(log_dir.warnings))

    def _is_wanted(self, entry: tuple[str, Folder], config_of: ConfigOf, now_ms: int) -> bool:
        """Whether a folder is to be opened; those of deleted logs are removed later."""
        path, (topic_partition, kind) = entry
        if kind is FolderKind.DELETE:
            self._doomed.append(Doomed(now_ms + config_of(topic_partition.topic).file_delete_delay_ms, path))
        elif kind is FolderKind.STRAY:
            self.strays[path] = topic_partition
        return kind in (FolderKind.CURRENT, FolderKind.FUTURE)

    def _each(
        self, open_one: Callable[[tuple[str, Folder]], Log], wanted: list[tuple[str, Folder]], clean: bool
    ) -> Iterator[Log]:
        if clean or self._recovery_threads < 2 or len(wanted) < 2:
            yield from map(open_one, wanted)
            return
        from concurrent.futures import ThreadPoolExecutor  # only to recover

        with ThreadPoolExecutor(self._recovery_threads, "log-recovery") as pool:
            yield from pool.map(open_one, wanted)

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
            producer_expiration_ms=self.producer_expiration_ms,
            verification_enabled=self.verification_enabled,
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
        """The partition's log."""
        return self._logs.get(topic_partition)

    def future(self, topic_partition: TopicPartition) -> Log | None:
        """The partition's log-to-be in another directory, while it is being moved there."""
        return self._futures.get(topic_partition)

    def online_dirs(self) -> list[LogDir]:
        """The directories in use; a broker without any stops."""
        return [log_dir for log_dir in self.dirs.values() if log_dir.online]

    def in_dir(self, path: str) -> list[Log]:
        """All logs in a directory, future ones included."""
        return [log for log in self._all() if log.log_dir == path]

    def sizes(self, path: str) -> list[ReplicaSize]:
        """The logs in a directory and their sizes."""
        return [
            ReplicaSize(log.topic_partition, log.size_bytes, log.log_end_offset, log in self._futures.values())
            for log in self.in_dir(path)
        ]

    def _all(self) -> list[Log]:
        """A list made at one go: worker threads ask too, while logs come and go."""
        return [*self._logs.values(), *self._futures.values()]

    # Creating and deleting

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
        now_ms: int,
        *,
        log_dir: str | None = None,
    ) -> Log:
        """The partition's log, made if there is none, in the given directory or the one that has the fewest.

        Raises KafkaError: INCONSISTENT_TOPIC_ID for a log of another topic, LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            home = self._emptiest() if log_dir is None else self._online(log_dir)
            path = os.path.join(home.path, folder_name(topic_partition))
            log = self._logs[topic_partition] = self._create(home, path, topic_partition, topic_id, config, now_ms)
        elif topic_id is not None:
            log.assign_topic_id(topic_id)
        return log

    def _create(
        self,
        home: LogDir,
        path: str,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
        now_ms: int,
    ) -> Log:
        if topic_partition in home.stale:  # a log start of the deleted one would empty the new one after a crash
            self.write_checkpoints(home.path)
        return self._open(path, topic_partition, config, now_ms, topic_id=topic_id)

    def _emptiest(self) -> LogDir:
        online = self.online_dirs()
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
        if len(online) == 1:
            return online[0]
        counts: dict[str, int] = dict.fromkeys((log_dir.path for log_dir in online), 0)
        for log in self._all():
            counts[log.log_dir] += 1
        return min(online, key=lambda log_dir: counts[log_dir.path])

    def _online(self, path: str) -> LogDir:
        log_dir = self.dirs.get(os.path.abspath(path))
        if log_dir is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs: {', '.join(self.dirs)}")
        if log_dir.error is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} is offline: {log_dir.error}")
        return log_dir

    def delete(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Take the partition's logs away. Their folders are renamed now, and removed after file.delete.delay.ms."""
        for logs in (self._logs, self._futures):
            log = logs.pop(topic_partition, None)
            if log is not None:
                self._doom(log, now_ms)

    def set_stray_aside(self, topic_partition: TopicPartition) -> None:
        """Rename the folder of a log that the cluster does not know: kept, but not served."""
        log = self._logs.pop(topic_partition)
        self.strays[self._rename(log, FolderKind.STRAY)] = topic_partition

    def _doom(self, log: Log, now_ms: int) -> None:
        directory = self._rename(log, FolderKind.DELETE)
        self._doomed.append(Doomed(now_ms + log.config.file_delete_delay_ms, directory))

    def _rename(self, log: Log, kind: FolderKind) -> str:
        directory = os.path.join(log.log_dir, marked_folder_name(log.topic_partition, kind, self._unique()))
        self.dirs[log.log_dir].stale.add(log.topic_partition)
        self._move_folder(log, directory)
        log.segments.release()
        return directory

    def _move_folder(self, log: Log, directory: str) -> None:
        with failing(log.log_dir, f"renaming the folder of {log.topic_partition}"):
            self.disk.rename(log.directory, directory)
        log.relocate(directory)

    def delete_expired(self, now_ms: int) -> list[str]:
        """Remove what was set aside long enough ago: folders of deleted logs, whose paths it returns, and files of
        deleted segments."""
        due = [doomed for doomed in self._doomed if doomed.due_ms <= now_ms]
        for doomed in due:
            with failing(os.path.dirname(doomed.directory), f"removing {doomed.directory}"):
                self.disk.rmtree(doomed.directory)
            self._doomed.remove(doomed)
        for log in self._all():
            with failing(log.log_dir, f"removing deleted segments of {log.topic_partition}"):
                log.segments.delete_expired(now_ms)
        return [doomed.directory for doomed in due]

    # Moving between directories

    def create_future(self, topic_partition: TopicPartition, log_dir: str, now_ms: int) -> Log:
        """Begin to move a log: an empty one in another directory, to be filled by `copy_to_future`."""
        current, home = self._logs[topic_partition], self._online(log_dir)
        assert topic_partition not in self._futures, f"{topic_partition} is being moved already"
        path = os.path.join(home.path, marked_folder_name(topic_partition, FolderKind.FUTURE, self._unique()))
        future = self._create(home, path, topic_partition, current.topic_id, current.config, now_ms)
        future.truncate_fully(current.log_start_offset, now_ms)
        self._futures[topic_partition] = future
        return future

    def copy_to_future(self, topic_partition: TopicPartition, now_ms: int, max_bytes: int = COPY_BYTES) -> bool:
        """Copy the next batches; True when the future log has all that the current one has."""
        current, future = self._logs[topic_partition], self._futures[topic_partition]
        if future.log_end_offset < current.log_start_offset:
            future.truncate_fully(current.log_start_offset, now_ms)
        for part in current.read(future.log_end_offset, max_bytes).parts:
            future.append(part, leader_epoch=-1, now_ms=now_ms, origin=Origin.REPLICATION)
        return future.log_end_offset == current.log_end_offset

    def swap_future(self, topic_partition: TopicPartition, now_ms: int) -> Log:
        """The future log, which has everything, becomes the current one; the old one is deleted."""
        current, future = self._logs[topic_partition], self._futures[topic_partition]
        assert future.log_end_offset == current.log_end_offset, f"{topic_partition} is not copied whole"
        future.update_high_watermark(current.high_watermark)
        self._move_folder(future, os.path.join(future.log_dir, folder_name(topic_partition)))
        self._logs[topic_partition] = self._futures.pop(topic_partition)
        self._doom(current, now_ms)
        return future

    def cancel_future(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Stop moving a log; what was copied goes."""
        future = self._futures.pop(topic_partition, None)
        if future is not None:
            self._doom(future, now_ms)

    # What happens by and by

    def flush_due(self, now_ms: int) -> int:
        """Flush the logs that flush.ms or flush.messages ask for, and segments that were rolled; how many logs.

        Raises LogDirFailure for the first directory that fails.
        """
        due = [(log, up_to) for log in self._all() if (up_to := log.due_flush(now_ms)) is not None]
        for log, up_to in due:
            log.flush(now_ms, up_to)
        return len(due)

    def apply_retention(self, now_ms: int) -> list[tuple[Log, list[Deletable]]]:
        """Delete the segments that their topics' retention no longer covers; which ones, for the broker's log."""
        done = []
        for log in self._all():
            found = log.apply_retention(now_ms)
            if found:
                done.append((log, found))
        return done

    def write_checkpoints(self, path: str | None = None) -> None:
        """Write the recovery points and log starts of one directory, or of all that are online."""
        for log_dir in self.online_dirs():
            if path in (None, log_dir.path):
                with failing(log_dir.path, "writing the checkpoints", may_be_full=True):
                    log_dir.write_checkpoints(self.in_dir)

    # The end

    def fail(self, path: str, error: Exception) -> list[TopicPartition]:
        """Take a directory offline until the next start; the partitions whose logs are gone with it."""
        log_dir = self.dirs[path]
        log_dir.error = error
        gone = []
        for logs in (self._logs, self._futures):
            for topic_partition in [key for key, log in logs.items() if log.log_dir == path]:
                logs.pop(topic_partition).segments.release()
                gone.append(topic_partition)
        self._doomed = [doomed for doomed in self._doomed if os.path.dirname(doomed.directory) != path]
        return gone

    def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Flush and close all logs, and mark each directory in which that worked as clean. Failed ones are offline."""
        for log_dir in self.online_dirs():
            try:
                for log in self.in_dir(log_dir.path):
                    log.flush(now_ms)
                    log.close()
                with failing(log_dir.path, "closing"):
                    log_dir.write_checkpoints(self.in_dir)
                    log_dir.mark_clean(broker_epoch)
            except (LogDirFailure, LogDirFull) as error:
                self.fail(log_dir.path, error)
