"""All logs of the broker, over its log directories. Kafka class LogManager.

For the event loop, but for what may take long and runs in worker threads beside it: `load`, `flush_due`,
`write_checkpoints`, `delete_expired`, `close`. A directory that fails goes offline with its logs, the others serve on.
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
"""How much of a log moves to its future place in one step."""


class Logs(LogTable):
    """The logs by partition. `load` first, `close` at the end; methods raise LogDirFailure."""

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
        """Returns the partition's log, created if there is none, in the given directory or the one that has the fewest.

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
        log.is_doomed = True  # before its files are elsewhere: a worker thread may be flushing them
        self._move_folder(log, directory)
        log.segments.release()
        return directory

    def _move_folder(self, log: Log, directory: str) -> None:
        with failing(log.log_dir, f"renaming the folder of {log.topic_partition}", report=self.on_failure):
            self.disk.rename(log.directory, directory)
        log.relocate(directory)

    def truncate_to(self, topic_partition: TopicPartition, offset: int, now_ms: int, *, fully: bool = False) -> bool:
        """Drop a log's records from this offset on, or `fully` all of them, whereupon the next one gets the offset;
        True if there were any. Raises LogDirFailure, and KafkaError where the log is not there any more. For any
        thread, after `Log.begin_truncation`.

        Also from the log that it is being moved to, and from the checkpoints, by which recovery would trust what is
        written in their place, and take it for committed: without them the log cannot go on.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} is not there any more")
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
        """Remove what was set aside long enough ago: folders of deleted logs, whose paths it returns, and files of
        deleted segments. Raises LogDirFailure, when all directories that work have been served."""
        due = [doomed for doomed in self._doomed if doomed.due_ms <= now_ms]
        failures = Failures()
        for doomed in due:
            failures.attempt(os.path.dirname(doomed.directory), partial(self._remove, doomed))
        for log in self._all():
            due_ms = log.segments.next_deletion_ms
            if due_ms is not None and due_ms <= now_ms:  # of ten thousand logs, most have nothing to remove
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
        """Makes the future log, which has everything, the current one; the old one is deleted."""
        current, future = self._logs[topic_partition], self._futures[topic_partition]
        assert future.log_end_offset == current.log_end_offset, f"{topic_partition} is not copied whole"
        for epoch, start_offset in current.epochs.entries:  # also those that no record tells of
            if epoch > future.last_leader_epoch:
                future.assign_leader_epoch(epoch, start_offset)
        future.update_high_watermark(current.high_watermark)
        future.cleaned_to = current.cleaned_to
        self._move_folder(future, os.path.join(future.log_dir, folder_name(topic_partition)))
        self._logs[topic_partition] = self._futures.pop(topic_partition)
        self._doom(current, now_ms)
        return future

    def cancel_future(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Stop moving a log; what was copied goes."""
        future = self._futures.pop(topic_partition, None)
        if future is not None:
            self._doom(future, now_ms)

    # Maintenance

    def flush_due(self, now_ms: int) -> int:
        """Flush the logs that flush.ms or flush.messages ask for, and segments that were rolled; returns how many logs.

        Raises LogDirFailure for the first directory that fails, in which nothing more is flushed, after the others.
        """
        due = [(log, up_to) for log in self._all() if (up_to := log.due_flush(now_ms)) is not None]
        failures = Failures()
        for log, up_to in due:
            failures.attempt(log.log_dir, partial(log.flush, now_ms, up_to))
        failures.raise_first()
        return len(due)

    def look_at_old_segments(self, now_ms: int) -> None:
        """Read the timestamps of segments that `apply_retention` will ask for. For a worker thread."""
        failures = Failures()
        for log in self._all():
            failures.attempt(log.log_dir, partial(log.look_at_old_segments, now_ms))
        failures.raise_first()

    def apply_retention(self, now_ms: int) -> list[tuple[Log, list[Deletable]]]:
        """Delete the segments that their topics' retention no longer covers, and return them, for the broker's log. A
        log that is being cleaned, or truncated, is left for the next time.

        Raises LogDirFailure for the first directory that fails, after the others.
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
        """Write the recovery points, log starts and cleaned offsets of one directory, or of all that are online.

        Raises LogDirFailure or LogDirFull for the first directory that fails, after the others.
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
        """Write up to where the logs of one directory, or of all that are online, are committed.

        Raises LogDirFailure or LogDirFull for the first directory that fails, after the others.
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
        """Find out that a directory has vanished, or is no longer mounted, before anybody's records go nowhere.

        For a worker thread. Raises LogDirFailure for the first one, after the others.
        """
        failures = Failures()
        for log_dir in self.online_dirs():
            failures.attempt(log_dir.path, partial(self._look_for, log_dir.path))
        failures.raise_first()

    def _look_for(self, path: str) -> None:
        file = os.path.join(path, META_PROPERTIES)
        with failing(path, "looking whether the directory is there", report=self.on_failure):
            if not self.disk.exists(file):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)

    # The end

    def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Flush and close all logs, and mark each directory in which that worked as clean. Failed ones are offline."""

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
