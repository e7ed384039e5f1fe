"""Decides when to write a snapshot of the metadata, and which records and snapshots to delete afterwards (KIP-630).

A snapshot has the committed state. It is written in a thread from a copy of the image, while clients are served. It
gets its name once it is complete and flushed. Only then are the log before an older snapshot and earlier snapshots
deleted, so that a crash at any time leaves the newest complete snapshot and the log after it.

Source: Kafka's SnapshotGenerator and KafkaMetadataLog.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.metadata.log import MetadataLog, Worker
from coordinator.cluster.image import Image
from coordinator.cluster.image_records import records_of
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataBatch
from coordinator.cluster.snapshot import SnapshotFile, SnapshotId, snapshot_path, stat_snapshot, write_snapshot
from coordinator.engine.clock import EngineClock
from protocol.records.control import KRaftVersionRecord, VotersRecord
from storage.disk import Disk

DUE_AT_START_BYTES = 1 << 20
"""Bytes of the log after the last snapshot that make a new snapshot due at a start or a clean stop: about 10,000
records, which take a tenth of a second to replay. While the broker runs, the options decide.
"""


class SnapshotRules(NamedTuple):
    """When to write a snapshot, and how long to keep older snapshots; a negative limit means no limit."""

    max_record_bytes: int = 20 << 20  # metadata.log.max.record.bytes.between.snapshots
    max_interval_ms: int = 60 * 60 * 1000  # metadata.log.max.snapshot.interval.ms; 0 disables it
    retention_bytes: int = 100 << 20  # metadata.max.retention.bytes
    retention_ms: int = 7 * 24 * 60 * 60 * 1000  # metadata.max.retention.ms


class SnapshotContent(NamedTuple):
    """The content of a snapshot that is about to be written."""

    snapshot_id: SnapshotId
    image: Image
    quorum: Sequence[KRaftVersionRecord | VotersRecord]
    last_timestamp_ms: int


class Snapshots:
    """The snapshots beside the metadata log, oldest first."""

    def __init__(
        self,
        loader: MetadataLoader,
        log: MetadataLog,
        rules: SnapshotRules,
        replayed_bytes: int,
        *,
        disk: Disk,
        clock: EngineClock,
        worker: Worker,
    ) -> None:
        """`replayed_bytes` is the number of bytes of the log after the newest snapshot, which the start has
        replayed.
        """
        self._loader = loader
        self._log = log
        self._rules = rules
        self._disk = disk
        self._clock = clock
        self._worker = worker
        self._size_bytes = replayed_bytes
        """Bytes of the log since the start of the newest snapshot."""
        self._begun_ms = clock.now_ms()
        self._writing = False
        self._closed = False
        self.written_bytes = 0
        """The size of the last snapshot that this process has written; 0 before the first."""
        self.written_ms = self._begun_ms
        """The time when it was written, or when the process started."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change of `ids` and of the log's start."""
        self._files = [stat_snapshot(disk, log.directory, snapshot_id) for snapshot_id in log.snapshots()]

    @property
    def ids(self) -> list[SnapshotId]:
        """The complete snapshots that are not to be deleted yet, oldest first."""
        return [file.snapshot_id for file in self._files]

    def committed(self, batch: MetadataBatch) -> None:
        """Counts a batch after the newest snapshot."""
        self._size_bytes += batch.size_bytes
        if self._size_bytes >= self._rules.max_record_bytes:
            self._begin()

    def adopted(self, file: SnapshotFile) -> None:
        """Adds a snapshot of the leader's, after which the log starts again, and deletes the older snapshots."""
        self._size_bytes, self._begun_ms = 0, self._clock.now_ms()
        older = [older.snapshot_id for older in self._files]
        self._files = [file]
        self.on_change()
        if older:
            self._run(lambda: self._log.delete_snapshots(older))

    def maintain(self) -> None:
        """Starts a snapshot that is due by time, and deletes snapshots that are old enough. Call it at intervals; it
        does not wait.
        """
        interval_ms = self._rules.max_interval_ms
        if interval_ms and self._size_bytes and self._clock.now_ms() - self._begun_ms >= interval_ms:
            self._begin()
        self._clean()
        self._run(self._log.delete_expired)

    def write_if_due(self) -> None:
        """Writes a snapshot in this thread if one is due, at a start or a stop. Raises LogDirFailure, LogDirFull."""
        if self._size_bytes >= DUE_AT_START_BYTES and not self._loader.in_transaction:
            content = self._content()
            if content is not None:
                self._add(self._write(content))

    def close(self) -> None:
        """Discards a snapshot that is being written."""
        self._closed = True

    def _begin(self) -> None:
        """Starts to write a snapshot in a thread, unless one is being written."""
        if self._writing or self._closed or self._loader.in_transaction:
            return
        content = self._content()
        if content is None:
            return
        self._writing = True
        files: list[SnapshotFile] = []

        def written(_: BaseException | None) -> None:
            self._writing = False
            if not self._closed:
                for file in files:  # empty after a disk failure, which has been reported
                    self._add(file)

        self._worker.run(lambda: files.append(self._write(content)), written)

    def _content(self) -> SnapshotContent | None:
        """Returns the current committed state; None if the newest snapshot already has it."""
        image, voters = self._loader.image, self._loader.voters
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        self._size_bytes, self._begun_ms = 0, self._clock.now_ms()
        if self._files and self._files[-1].snapshot_id == snapshot_id:
            return None
        quorum: list[KRaftVersionRecord | VotersRecord] = []
        if image.kraft_version and voters is not None:  # else the voters are in the configuration
            quorum = [KRaftVersionRecord(version=0, k_raft_version=image.kraft_version), voters]
        return SnapshotContent(snapshot_id, image.copy(), quorum, self._loader.last_timestamp_ms)

    def _write(self, content: SnapshotContent) -> SnapshotFile:
        with self._log.failing("writing a snapshot of"):
            write_snapshot(
                self._disk,
                snapshot_path(self._log.directory, content.snapshot_id),
                list(records_of(content.image)),
                metadata_version=content.image.metadata_version,
                last_timestamp=content.last_timestamp_ms,
                now_ms=self._clock.now_ms(),
                epoch=content.snapshot_id.epoch,
                quorum=content.quorum,
            )
            return stat_snapshot(self._disk, self._log.directory, content.snapshot_id)

    def _add(self, file: SnapshotFile) -> None:
        self._files.append(file)
        self.written_bytes, self.written_ms = file.size_bytes, self._clock.now_ms()
        self.on_change()
        self._clean()

    def _clean(self) -> None:
        """Deletes the log before the oldest snapshot that is kept, and all earlier snapshots."""
        expired: list[SnapshotId] = []
        while len(self._files) > 1 and self._is_expired(self._files[0]):
            self._log.cut(self._files[1].snapshot_id.offset)
            expired.append(self._files.pop(0).snapshot_id)
        if expired:
            self.on_change()
            self._run(lambda: self._log.delete_snapshots(expired))

    def _is_expired(self, oldest: SnapshotFile) -> bool:
        rules = self._rules
        size_bytes = self._log.size_bytes + sum(file.size_bytes for file in self._files)
        if 0 <= rules.retention_bytes < size_bytes:
            return True
        age_ms = self._clock.now_ms() - oldest.last_timestamp_ms
        return 0 <= rules.retention_ms < age_ms

    def _run(self, work: Callable[[], None]) -> None:
        """Runs work in a worker thread, which reports disk failures itself."""
        if not self._closed:
            self._worker.run(work, lambda _: None)
