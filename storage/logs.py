"""All logs of the broker, in all log directories. Kafka class LogManager.

The event loop calls the methods, except those that may take long and run in worker threads: `load`, `flush_due`,
`write_checkpoints`, `delete_expired`, `close`. A directory that fails goes offline with its logs; the others continue.
"""

from __future__ import annotations

import errno
import os
from functools import partial

from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid
from storage.config import LogConfig
from storage.failure import Failures, StorageError, failing
from storage.log import Log
from storage.log_dir import LogDir
from storage.log_table import Doomed, LogTable, in_threads
from storage.meta_properties import META_PROPERTIES
from storage.names import FolderKind, folder_name, marked_folder_name
from storage.producers.entry import Origin
from storage.retention import Deletable

COPY_BYTES = 1 << 20
"""Bytes that are copied to a future log in a step."""


class Logs(LogTable):
    """The logs by partition. Call `load` first and `close` at the end. Methods raise LogDirFailure."""

    __slots__ = ()

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
        """Returns the partition's log. Creates a missing log in `log_dir`, or in the directory with the fewest logs.

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
        if topic_partition in home.stale:  # after a crash, the deleted log's start offset would empty the new log
            self.write_checkpoints(home.path)
            self.write_high_watermarks(home.path)
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
        """Deletes the partition's logs: renames their folders now, and removes them after file.delete.delay.ms."""
        for logs in (self._logs, self._futures):
            log = logs.pop(topic_partition, None)
            if log is not None:
                self._doom(log, now_ms)

    def set_stray_aside(self, topic_partition: TopicPartition) -> None:
        """Renames the folder of a log that is not in the cluster's metadata. Its data is kept, but not served."""
        log = self._logs.pop(topic_partition)
        self.strays[self._rename(log, FolderKind.STRAY)] = topic_partition

    def _doom(self, log: Log, now_ms: int) -> None:
        directory = self._rename(log, FolderKind.DELETE)
        self._doomed.append(Doomed(now_ms + log.config.file_delete_delay_ms, directory))

    def _rename(self, log: Log, kind: FolderKind) -> str:
        directory = os.path.join(log.log_dir, marked_folder_name(log.topic_partition, kind, self._unique()))
        self.dirs[log.log_dir].stale.add(log.topic_partition)
        log.is_doomed = True  # set before the rename, because a worker thread may be flushing the files
        self._move_folder(log, directory)
        log.segments.release()
        return directory

    def _move_folder(self, log: Log, directory: str) -> None:
        with failing(log.log_dir, f"renaming the folder of {log.topic_partition}", report=self.on_failure):
            self.disk.rename(log.directory, directory)
        log.relocate(directory)

    def truncate_to(self, topic_partition: TopicPartition, offset: int, now_ms: int, *, fully: bool = False) -> bool:
        """Deletes a log's records from this offset on, or with `fully` all records, so that the next record gets this
        offset; True on change. Raises LogDirFailure, and KafkaError if the log no longer exists. For any thread, after
        `Log.begin_truncation`.

        Truncates the future log too, and writes the checkpoints: with old recovery points and high watermarks, recovery
        would trust the records that are appended next and take them for committed.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} no longer has a log")
        future = self._futures.get(topic_partition)
        if future is not None:
            future.truncate_between_flushes(offset, now_ms, fully=fully)
        truncated = log.truncate_between_flushes(offset, now_ms, fully=fully)
        if truncated:
            with failing(log.log_dir, "writing the checkpoints after a truncation", report=self.on_failure):
                self.dirs[log.log_dir].write_checkpoints(self.in_dir)
                self.dirs[log.log_dir].write_high_watermarks(self.in_dir)
        return truncated

    def delete_expired(self, now_ms: int) -> list[str]:
        """Removes folders of deleted logs, whose paths it returns, and files of deleted segments, if their delay is
        over. Raises LogDirFailure, after the work in all other directories."""
        due = [doomed for doomed in self._doomed if doomed.due_ms <= now_ms]
        failures = Failures()
        for doomed in due:
            failures.attempt(os.path.dirname(doomed.directory), partial(self._remove, doomed))
        for log in self._all():
            due_ms = log.segments.next_deletion_ms
            if due_ms is not None and due_ms <= now_ms:  # most of ten thousand logs have nothing to remove
                failures.attempt(log.log_dir, partial(self._remove_expired, log, now_ms))
        failures.raise_first()
        return [doomed.directory for doomed in due]

    def _remove(self, doomed: Doomed) -> None:
        directory = doomed.directory
        with failing(os.path.dirname(directory), f"removing {directory}", report=self.on_failure):
            self.disk.rmtree(directory)
        self._doomed.remove(doomed)

    def _remove_expired(self, log: Log, now_ms: int) -> None:
        with failing(log.log_dir, f"removing deleted segments of {log.topic_partition}", report=self.on_failure):
            log.segments.delete_expired(now_ms)

    # Moving between directories

    def create_future(self, topic_partition: TopicPartition, log_dir: str, now_ms: int) -> Log:
        """Starts to move a log: creates an empty future log in another directory, which `copy_to_future` fills."""
        current, home = self._logs[topic_partition], self._online(log_dir)
        assert topic_partition not in self._futures, f"{topic_partition} is being moved already"
        path = os.path.join(home.path, marked_folder_name(topic_partition, FolderKind.FUTURE, self._unique()))
        future = self._create(home, path, topic_partition, current.topic_id, current.config, now_ms)
        future.truncate_fully(current.log_start_offset, now_ms)
        self._futures[topic_partition] = future
        return future

    def copy_to_future(self, topic_partition: TopicPartition, now_ms: int, max_bytes: int = COPY_BYTES) -> bool:
        """Copies the next batches; True if the future log then has all batches of the current log."""
        current, future = self._logs[topic_partition], self._futures[topic_partition]
        if future.log_end_offset < current.log_start_offset:
            future.truncate_fully(current.log_start_offset, now_ms)
        for part in current.read(future.log_end_offset, max_bytes).parts:
            future.append(part, leader_epoch=-1, now_ms=now_ms, origin=Origin.REPLICATION)
        return future.log_end_offset == current.log_end_offset

    def swap_future(self, topic_partition: TopicPartition, now_ms: int) -> Log:
        """Makes the future log, which has all batches, the current log, and deletes the old log."""
        current, future = self._logs[topic_partition], self._futures[topic_partition]
        assert future.log_end_offset == current.log_end_offset, f"{topic_partition} is not copied completely"
        for epoch, start_offset in current.epochs.entries:  # the copied batches don't have epochs without records
            if epoch > future.last_leader_epoch:
                future.assign_leader_epoch(epoch, start_offset)
        future.update_high_watermark(current.high_watermark)
        future.cleaned_to = current.cleaned_to
        self._move_folder(future, os.path.join(future.log_dir, folder_name(topic_partition)))
        self._logs[topic_partition] = self._futures.pop(topic_partition)
        self._doom(current, now_ms)
        return future

    def cancel_future(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Cancels the move of a log, and deletes the copied part."""
        future = self._futures.pop(topic_partition, None)
        if future is not None:
            self._doom(future, now_ms)

    # Maintenance

    def flush_due(self, now_ms: int) -> int:
        """Flushes the logs that are due by flush.ms or flush.messages, and rolled segments; returns the number of logs.

        Flushes nothing more in a directory that fails. Raises the first LogDirFailure after the other directories.
        """
        due = [(log, up_to) for log in self._all() if (up_to := log.due_flush(now_ms)) is not None]
        failures = Failures()
        for log, up_to in due:
            failures.attempt(log.log_dir, partial(log.flush, now_ms, up_to))
        failures.raise_first()
        return len(due)

    def look_at_old_segments(self, now_ms: int) -> None:
        """Reads the timestamps of segments that `apply_retention` will need. For a worker thread."""
        failures = Failures()
        for log in self._all():
            failures.attempt(log.log_dir, partial(log.look_at_old_segments, now_ms))
        failures.raise_first()

    def apply_retention(self, now_ms: int) -> list[tuple[Log, list[Deletable]]]:
        """Deletes the segments that have expired by their topics' retention, and returns them, for the broker's log.
        Skips a log that is being cleaned or truncated until the next call.

        Raises the first LogDirFailure, after the work in all other directories.
        """
        done: list[tuple[Log, list[Deletable]]] = []

        def apply(log: Log) -> None:
            deleted = log.apply_retention(now_ms)
            if deleted:
                done.append((log, deleted))

        failures = Failures()
        for log in self._all():
            if not log.is_at_work:
                failures.attempt(log.log_dir, partial(apply, log))
        failures.raise_first()
        return done

    def write_checkpoints(self, path: str | None = None) -> None:
        """Writes the recovery points, log start offsets and cleaned offsets of a directory, or of all online
        directories.

        Raises the first LogDirFailure or LogDirFull, after the other directories.
        """
        failures = Failures()
        for log_dir in self.online_dirs():
            if path in (None, log_dir.path):
                failures.attempt(log_dir.path, partial(self._write_checkpoints, log_dir))
        failures.raise_first()

    def _write_checkpoints(self, log_dir: LogDir) -> None:
        with failing(log_dir.path, "writing the checkpoints", may_be_full=True, report=self.on_failure):
            log_dir.write_checkpoints(self.in_dir)

    def write_high_watermarks(self, path: str | None = None) -> None:
        """Writes the high watermarks of a directory, or of all online directories.

        Raises the first LogDirFailure or LogDirFull, after the other directories.
        """
        failures = Failures()
        for log_dir in self.online_dirs():
            if path in (None, log_dir.path):
                failures.attempt(log_dir.path, partial(self._write_high_watermarks, log_dir))
        failures.raise_first()

    def _write_high_watermarks(self, log_dir: LogDir) -> None:
        with failing(log_dir.path, "writing the high watermarks", may_be_full=True, report=self.on_failure):
            log_dir.write_high_watermarks(self.in_dir)

    def look_for_dirs(self) -> None:
        """Checks that each directory still exists and is mounted, before records are written to a missing directory.

        For a worker thread. Raises the first LogDirFailure, after the work in all other directories.
        """
        failures = Failures()
        for log_dir in self.online_dirs():
            failures.attempt(log_dir.path, partial(self._look_for, log_dir.path))
        failures.raise_first()

    def _look_for(self, path: str) -> None:
        file = os.path.join(path, META_PROPERTIES)
        with failing(path, "checking that the directory exists", report=self.on_failure):
            if not self.disk.exists(file):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)

    # The end

    def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Flushes and closes all logs, and marks each directory as clean. Directories that fail go offline instead."""

        def finish(log: Log) -> None:
            log.flush(now_ms)
            log.close()

        for log_dir in self.online_dirs():
            try:
                for _ in in_threads(self._recovery_threads, finish, self.in_dir(log_dir.path)):
                    pass
                with failing(log_dir.path, "closing"):
                    log_dir.write_checkpoints(self.in_dir)
                    log_dir.write_high_watermarks(self.in_dir)
                    log_dir.mark_clean(broker_epoch)
            except StorageError as error:
                self.fail(log_dir.path, error)
