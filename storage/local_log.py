"""A log's files: rolls, flushes, truncates and deletes its segments. Kafka class LocalLog."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Final

from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid
from storage.appending.append import AppendRules
from storage.checkpoint import sync_partition_metadata
from storage.config import MAX_LONG, LogConfig
from storage.disk import Disk
from storage.failure import OUR_OWN, OUT_OF_SPACE, LogDirFailure, Report, StorageError, failing, failure, full, unheard
from storage.recovering.loaded import LoadedLog
from storage.recovering.producers import rebuild_producers
from storage.recovering.truncation import copy_before, put_in_place
from storage.retention import Deletable, deletable
from storage.segment.segment import Segment

NO_EPOCH: Final = -1


class LocalLog:
    """One partition's segments, its offsets, and the state of its producers and leader epochs."""

    __slots__ = (
        "_config",
        "_disk",
        "_flush_failed",
        "_flushing",
        "_generation",
        "_named",
        "cleaned_to",
        "cleaning",
        "directory",
        "epochs",
        "flushes",
        "high_watermark",
        "is_being_truncated",
        "is_doomed",
        "last_flush_ms",
        "last_leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "producer_state",
        "recovered",
        "recovery_point",
        "report",
        "rules",
        "segments",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        disk: Disk,
        now_ms: int,
        report: Report = unheard,
    ) -> None:
        """Creates a log from the segments that `recovery.load` opened."""
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id: Uuid | None = None
        self.segments = loaded.segments
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.log_start_offset
        self.epochs = loaded.epochs
        self.producer_state = loaded.producer_state
        self.recovered = loaded.recovered
        self.cleaned_to: int | None = None
        """The offset at which the next cleaning of a compacted log begins; None before the first cleaning."""
        self.cleaning = False
        """True while the cleaner works on the segments. Retention waits meanwhile."""
        self.is_being_truncated = False
        """True while a thread truncates the log."""
        self.last_flush_ms = now_ms
        self.last_leader_epoch = NO_EPOCH if loaded.epochs.latest_epoch is None else loaded.epochs.latest_epoch
        self.report = report
        self._disk = disk
        self._flush_failed: LogDirFailure | None = None
        self._flushing = Lock()
        self._generation = 0
        self.is_doomed = False
        """True once the folder is being renamed as deleted or stray. A concurrent flush may not find the files."""
        self._named = loaded.clean
        """True if the folder's name and the names in it are durable. False for a new folder, even after flushes of its
        segments, and after the removal of a segment whose creation failed."""
        self.config = config

    def __repr__(self) -> str:
        return f"Log({self.directory}, {self.log_start_offset} to {self.log_end_offset})"

    @property
    def config(self) -> LogConfig:
        """The topic's config, which may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.flushes = config.flush_messages < MAX_LONG
        self.rules = AppendRules(config)

    @property
    def log_dir(self) -> str:
        """The log directory (of log.dirs) that contains the log."""
        return os.path.dirname(self.directory)

    def failing(self, doing: str, *, may_be_full: bool = False) -> AbstractContextManager[None]:
        """Returns the context manager `failure.failing` for work on this log."""
        doing = f"{doing} {self.topic_partition}"
        return failing(self.log_dir, doing, may_be_full=may_be_full, report=self.report)

    def append_failed(self, segment: Segment, error: OSError) -> StorageError:
        """Removes the bytes that a failed append has written, so that appends can continue. Returns the error to
        raise."""
        doing = f"appending to {self.topic_partition}"
        if error.errno not in OUT_OF_SPACE | OUR_OWN:
            return failure(self.log_dir, doing, error, self.report)
        try:
            segment.cut_back()
        except OSError as second:
            cutting = f"cutting {self.topic_partition} back after a failed append"
            return failure(self.log_dir, cutting, second, self.report)
        kind = failure if error.errno in OUR_OWN else full
        return kind(self.log_dir, doing, error, self.report)

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.segments.size_bytes

    def assign_leader_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Adds a leader epoch that starts at the offset, as a new leader does before its first append."""
        if leader_epoch >= 0 and leader_epoch != self.last_leader_epoch:
            self.epochs.assign(leader_epoch, start_offset)
            self.last_leader_epoch = leader_epoch

    def roll(self, now_ms: int, next_offset: int | None = None) -> Segment:
        """Starts a new segment at the end, or at `next_offset` if that is beyond it. Raises LogDirFailure, LogDirFull.

        Writes a producer snapshot at the same offset, from which recovery can start.
        """
        base_offset = max(self.log_end_offset, next_offset or 0)
        old = self.segments.active
        if base_offset == old.base_offset and not old.size_bytes:
            return old
        with self.failing("rolling", may_be_full=True):
            segment = Segment.create(self.directory, base_offset, self._config, disk=self._disk, now_ms=now_ms)
            try:
                self.producer_state.end_offset = base_offset
                self.producer_state.take_snapshot(sync=False)
                old.seal()
            except OSError:
                segment.delete()  # appends continue in the old segment; else a restart would end the log at the new one
                self._named = False  # a power loss must not bring the new segment back after the next flush
                raise
        self.segments.append(segment)
        return segment

    def advance_log_start(self, offset: int) -> bool:
        """Moves the log start offset up, as DeleteRecords does; True on change.

        Retention later deletes the segments; the checkpoint stores the offset. Raises KafkaError(OFFSET_OUT_OF_RANGE)
        for an offset beyond the high watermark.
        """
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is beyond the high watermark, {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producer_state.on_log_start_offset_incremented(offset)
        return True

    @property
    def must_flush(self) -> bool:
        """True if flush.messages requires a flush before the latest appends are acknowledged."""
        return self.flushes and self.log_end_offset - self.recovery_point >= self._config.flush_messages

    def due_flush(self, now_ms: int) -> int | None:
        """Returns the offset to flush to: the log's end if flush.messages or flush.ms requires a flush, otherwise the
        end of the rolled segments. None if there is nothing to flush."""
        end, point = self.log_end_offset, self.recovery_point
        if end > point and (self.must_flush or now_ms - self.last_flush_ms >= self._config.flush_ms):
            return end
        rolled = self.segments.active.base_offset
        return rolled if rolled > point or self.segments.have_unsynced_indexes else None

    @property
    def checkpointed_recovery_point(self) -> int:
        """The recovery point for the checkpoint."""
        return self.segments.trusted_up_to(self.recovery_point)

    def flush(self, now_ms: int, up_to: int | None = None) -> None:
        """Flushes everything appended before the call to the device, then moves the recovery point.

        With `up_to`, only the segments that begin before that offset. Worker threads may call it; one thread flushes at
        a time. Raises LogDirFull, and LogDirFailure, after which no log of the directory may be flushed again.
        """
        end_offset, generation = self.log_end_offset if up_to is None else up_to, self._generation
        with self._flushing:
            if self._flush_failed is not None:
                raise self._flush_failed
            if end_offset > self.recovery_point or self.segments.have_unsynced_indexes:
                self._flush_files(end_offset)
            if generation == self._generation:  # otherwise the log was truncated meanwhile
                self.recovery_point = max(self.recovery_point, end_offset)
        if up_to is None or up_to > self.segments.active.base_offset:
            self.last_flush_ms = now_ms

    def _flush_files(self, end_offset: int) -> None:
        with self.failing("writing the epochs of", may_be_full=True):
            try:
                self.epochs.flush()
            except FileNotFoundError:
                if not self.is_doomed:
                    raise
        try:
            with self.failing("flushing"):
                try:
                    self._sync_files(end_offset)
                except FileNotFoundError:
                    if not self.is_doomed:
                        raise
        except LogDirFailure as error:
            self._flush_failed = error  # the system has dropped the pages, and would report success the next time
            raise

    def _sync_files(self, end_offset: int) -> None:
        self.producer_state.sync_snapshots(end_offset)
        self.segments.flush(self.recovery_point, end_offset)
        if not self._named:
            self._named = True  # set before the sync, because a failing roll on the event loop may reset it meanwhile
            self._name_durably()

    def _name_durably(self) -> None:
        """Makes the folder's name, the names in it and the topic id durable."""
        sync_partition_metadata(self._disk, self.directory)
        self._disk.fsync_dir(self.directory)
        self._disk.fsync_dir(self.log_dir)

    def close(self) -> None:
        """Writes the producer snapshot and the indexes, and closes all files. Flush first. Raises LogDirFailure.

        A broker may close ten thousand logs, most of them without changes. So it does not write what opening rebuilds
        or drops, and waits for the device only if a power loss could lose data.
        """
        with self.failing("closing"):
            has_new_files = self.producer_state.take_snapshot() is not None
            if not self.epochs.is_written_below(self.log_end_offset):
                self.epochs.flush()
                has_new_files = True
            has_new_files |= self.segments.close(sync=not self._is_void)
            if has_new_files:
                self._disk.fsync_dir(self.directory)

    @property
    def _is_void(self) -> bool:
        """True while the log has no record, and has had none since it was opened."""
        return not self.log_end_offset and not self._generation

    def begin_truncation(self) -> None:
        """Marks the log as being truncated. Until `end_truncation` only the truncating thread may read or change it;
        retention and the cleaner skip it, and a cleaning in progress is discarded."""
        self.is_being_truncated = True
        self._generation += 1

    def end_truncation(self) -> None:
        """Ends `begin_truncation`."""
        self.is_being_truncated = False

    @property
    def is_at_work(self) -> bool:
        """True while the segments are being cleaned or truncated. Retention skips the log."""
        return self.cleaning or self.is_being_truncated

    def truncate_between_flushes(
        self, offset: int, now_ms: int, *, fully: bool = False, may_be_full: bool = False
    ) -> bool:
        """Calls `truncate_to` or `truncate_fully` after a running flush. For a thread, after `begin_truncation`."""
        with self._flushing:
            if not fully:
                return self.truncate_to(offset, now_ms, may_be_full=may_be_full)
            self.truncate_fully(offset, now_ms)
            return True

    def truncate_to(self, offset: int, now_ms: int, *, may_be_full: bool = False) -> bool:
        """Deletes the records from this offset on, as a follower that diverged from its leader does; True on change.
        Raises LogDirFailure; LogDirFull, with nothing changed, if `may_be_full` and there is no room for the last
        segment's copy."""
        self._generation += 1
        if offset >= self.log_end_offset:
            self._epochs_end_at(self.log_end_offset)
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully(offset, now_ms)
            return True
        last, *later = self.segments.since(offset)
        with self.failing("truncating", may_be_full=may_be_full):
            shorter = copy_before(last, offset, self._config, disk=self._disk, now_ms=now_ms)
        with self.failing("truncating"):
            self.segments.replace(later, [])
            self._set_aside(later[::-1], now_ms)  # newest first, so that a crash in between leaves no gap
            self.segments.replace([last], [put_in_place(last, shorter, disk=self._disk)])
            self._ends_at(offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            rebuild_producers(self.producer_state, self.segments, self.log_start_offset, offset, now_ms)
            self._disk.fsync_dir(self.directory)
        return True

    def truncate_fully(self, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        """Deletes all records; the next record gets this offset. For a follower too far behind its leader."""
        self._generation += 1
        with self.failing("truncating"):
            old = list(self.segments)
            self._set_aside(old[::-1], now_ms)
            fresh = Segment.create(self.directory, offset, self._config, disk=self._disk, now_ms=now_ms)
            self.segments.replace(old, [fresh])
            self.producer_state.truncate_fully(offset)
            self._disk.fsync_dir(self.directory)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.epochs.clear()
        self._ends_at(offset)
        self.high_watermark = offset

    def _ends_at(self, offset: int) -> None:
        self.log_end_offset = offset
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self._epochs_end_at(offset)

    def _epochs_end_at(self, offset: int) -> None:
        self.epochs.truncate_from_end(offset)
        self.last_leader_epoch = NO_EPOCH if self.epochs.latest_epoch is None else self.epochs.latest_epoch

    def _set_aside(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Keeps the files of removed segments for file.delete.delay.ms, because readers may still use them."""
        for segment in segments:
            snapshot = self.producer_state.set_snapshot_aside(segment.base_offset)
            self.segments.set_aside(segment, snapshot, now_ms + self._config.file_delete_delay_ms)

    def look_at_old_segments(self, now_ms: int) -> None:
        """Reads the largest timestamps that retention will need. Raises LogDirFailure."""
        retention_ms = self._config.retention_ms
        if not self._config.delete or retention_ms < 0:
            return
        with self.failing("looking for segments to delete in"):
            for segment in self.segments:
                if not segment.sealed or now_ms - segment.largest_timestamp() <= retention_ms:
                    return

    def apply_retention(self, now_ms: int) -> list[Deletable]:
        """Deletes expired segments, and returns them with the reason of each. Raises LogDirFailure."""
        with self.failing("looking for segments to delete in"):
            expired = deletable(
                list(self.segments),
                self._config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
            )
        if expired:
            self.delete_segments([entry.segment for entry in expired], now_ms)
        return expired

    def delete_segments(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Deletes the oldest segments, which retention chose; the log then starts after them. Raises LogDirFailure."""
        if len(segments) == len(self.segments):
            self.roll(now_ms)
        with self.failing("deleting segments of"):
            self.segments.replace(segments, [])
            self.advance_log_start(self.segments.first.base_offset)
            self._set_aside(segments, now_ms)

    @property
    def truncations(self) -> int:
        """Number of truncations. The cleaner compares it to detect replaced segments."""
        return self._generation

    def relocate(self, directory: str) -> None:
        """Sets the folder's new path, after the log manager has renamed it."""
        self.directory = directory
        self.segments.relocate(directory)
        self.epochs.relocate(directory)
        self.producer_state.relocate(directory)
