"""The metadata log of an observer: a copy of the leader's log, committed up to the leader's high watermark.

It is not flushed until a snapshot covers its records, because after a power loss the node fetches them again.

Source: Kafka's KafkaRaftClient.appendAsFollower, KafkaMetadataLog.truncateToEndOffset and truncateToLatestSnapshot.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.metadata.log import MetadataLog
from coordinator.cluster.quorum_state import QuorumState, write_quorum_state
from coordinator.cluster.record import MetadataBatch
from coordinator.cluster.snapshot import Snapshot, SnapshotFile, SnapshotId, read_snapshot, snapshot_path, stat_snapshot
from coordinator.quorum.log_end import LogEnd
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_batches
from storage.producers.entry import Origin


class FollowedLog(MetadataLog):
    """The metadata log of an observer."""

    @property
    def end(self) -> LogEnd:
        """The offset and epoch from which the next Fetch continues. A log without records after its snapshot has the
        snapshot's epoch, an empty log epoch 0 (KafkaMetadataLog.lastFetchedEpoch).
        """
        epoch = self._log.last_leader_epoch
        if epoch < 0:  # the records after the snapshot were truncated, and the entry of its epoch with them
            epoch = next(
                (snapshot.epoch for snapshot in reversed(self.snapshots()) if snapshot.offset == self.end_offset), 0
            )
        return LogEnd(self.end_offset, epoch)

    def begin_at(self, snapshot_id: SnapshotId) -> None:
        """Starts at the snapshot that the image was loaded from: all records before it are committed."""
        if self.high_watermark < snapshot_id.offset <= self.end_offset:
            self._log.update_high_watermark(snapshot_id.offset)

    def remember(self, state: QuorumState) -> None:
        """Stores the quorum's leader and epoch for the next start. For a worker thread. Raises LogDirFailure,
        LogDirFull.
        """
        self.store(state)
        self.epoch, self.leader_id = state.leader_epoch, state.leader_id

    def store(self, state: QuorumState) -> None:
        """Writes `quorum-state`. For a worker thread. Raises LogDirFailure, LogDirFull."""
        with self.failing("writing the quorum's state of"):
            write_quorum_state(self._disk, self.directory, state)

    def extend(self, records: memoryview, epoch: int) -> int:
        """Appends whole batches from the leader and returns their size in bytes; leaves out a last batch that is
        incomplete.

        Raises KafkaError and ProtocolError, with nothing written, for damaged batches, for a gap, and for an epoch that
        is newer than the leader's or older than the previous record's (KAFKA-18723). Raises LogDirFailure, LogDirFull.
        """
        expected, last_epoch = self.end
        for _, header in iter_batches(records):
            if header.base_offset != expected or header.last_offset < header.base_offset:
                raise _corrupt(f"a batch begins at offset {header.base_offset}, but the next offset is {expected}")
            if not last_epoch <= header.partition_leader_epoch <= epoch:
                raise _corrupt(
                    f"the batch at offset {expected} has epoch {header.partition_leader_epoch}, which is not between "
                    f"the previous batch's {last_epoch} and the leader's {epoch}"
                )
            expected, last_epoch = header.next_offset, header.partition_leader_epoch
        before = self.end_offset
        if expected > before:
            self._log.append(records, leader_epoch=epoch, now_ms=self._clock.now_ms(), origin=Origin.REPLICATION)
        return self.end_offset - before

    def advance(self, high_watermark: int) -> Iterator[MetadataBatch | None]:
        """Advances the high watermark to the leader's, but not beyond the log's end, and never back. Yields each batch
        after listeners have it, and None between the slices of a large batch, so that the caller can pause there.
        Raises KafkaError and ProtocolError.
        """
        target = min(high_watermark, self.end_offset)
        position = self.high_watermark
        if target <= position:
            return
        for batch in self._read(position, target):
            if batch.next_offset > target:
                return
            self._log.update_high_watermark(batch.next_offset)
            for _ in self._notify(batch):
                yield None
            yield batch

    def truncate(self, epoch: int, end_offset: int) -> bool:
        """Truncates this log to the offset where it diverges from the leader's, in which `epoch` ended at `end_offset`.
        Returns False if this log already ends there. Raises KafkaError if committed records would be lost. Raises
        LogDirFailure.
        """
        own = self._log.epochs.end_offset_for(epoch, self.end_offset)
        if own.epoch < 0:
            return False  # all records here have later epochs, which no correct leader causes
        target = min(own.end_offset, end_offset) if own.epoch == epoch else own.end_offset
        if target < self.high_watermark:
            raise _corrupt(
                f"the leader's log diverges at offset {target}, but all records before {self.high_watermark} are "
                "committed here"
            )
        return self._log.truncate_to(target, self._clock.now_ms())

    def snapshot_part(self, snapshot_id: SnapshotId) -> str:
        """Returns the path of an incomplete snapshot."""
        return f"{snapshot_path(self.directory, snapshot_id)}.part"

    def write_part(self, snapshot_id: SnapshotId, position: int, content: memoryview) -> None:
        """Writes the next bytes of a snapshot. For a worker thread. Raises LogDirFailure, LogDirFull."""
        with self.failing("fetching a snapshot of"):
            handle = self._disk.open(self.snapshot_part(snapshot_id), create=True, truncate=not position)
            try:
                self._disk.pwritev(handle, [content], position)
            finally:
                self._disk.close(handle)

    def drop(self, snapshot_id: SnapshotId) -> None:
        """Removes an incomplete or damaged snapshot. For a worker thread. Raises LogDirFailure."""
        with self.failing("removing a snapshot of"):
            for path in (self.snapshot_part(snapshot_id), snapshot_path(self.directory, snapshot_id)):
                self._disk.unlink(path, missing_ok=True)

    def finish_part(self, snapshot_id: SnapshotId) -> tuple[Snapshot, SnapshotFile]:
        """Reads a snapshot that is now complete, and renames it durably to its final name. For a worker thread. Raises
        KafkaError and ProtocolError for a damaged snapshot, LogDirFailure, LogDirFull.
        """
        part = self.snapshot_part(snapshot_id)
        with self.failing("reading a snapshot of"):
            snapshot = read_snapshot(self._disk, part)
        with self.failing("keeping a snapshot of"):
            handle = self._disk.open(part)
            try:
                self._disk.fsync(handle)
            finally:
                self._disk.close(handle)
            self._disk.rename(part, snapshot_path(self.directory, snapshot_id))
            self._disk.fsync_dir(self.directory)
            return snapshot, stat_snapshot(self._disk, self.directory, snapshot_id)

    def restart_at(self, snapshot_id: SnapshotId) -> None:
        """Empties the log and starts it after a snapshot. Raises LogDirFailure."""
        self._log.truncate_fully(snapshot_id.offset, self._clock.now_ms())
        self._log.assign_leader_epoch(snapshot_id.epoch, snapshot_id.offset)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
