"""When the metadata log's snapshot is renewed, so that a start replays little however long the log is (KIP-630)."""

from __future__ import annotations

from broker.metadata.log import MetadataLog
from coordinator.cluster.image_records import records_of
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataBatch
from coordinator.cluster.snapshot import SnapshotId, snapshot_path, write_snapshot
from coordinator.runtime import Clock
from protocol.records.control import KRaftVersionRecord, VotersRecord
from storage.disk import Disk

SNAPSHOT_AFTER_BYTES = 1 << 20
"""Of the log since the last snapshot: some 10,000 records, which take a tenth of a second to replay. Apache Kafka's
metadata.log.max.record.bytes.between.snapshots is 20 MiB, for a JVM."""

KEPT_SNAPSHOTS = 2
"""The newest, and the one before it, should that be damaged."""


class Snapshots:
    """Renews the snapshot where the log's size since the last one asks for it: at a start and at a clean stop."""

    def __init__(self, loader: MetadataLoader, log: MetadataLog, replayed_bytes: int, disk: Disk, clock: Clock) -> None:
        """`replayed_bytes` of the log came after the snapshot that the start began with."""
        self._loader = loader
        self._log = log
        self._disk = disk
        self._clock = clock
        self._size_bytes = replayed_bytes

    def committed(self, batch: MetadataBatch) -> None:
        """A batch more stands behind the last snapshot."""
        self._size_bytes += batch.size_bytes

    def write_if_due(self) -> None:
        """Stand for all that is committed. Raises LogDirFailure, OSError."""
        image = self._loader.image
        if self._size_bytes < SNAPSHOT_AFTER_BYTES or self._loader.in_transaction:
            return
        now_ms = self._clock.now_ms()
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        folder = self._log.directory
        write_snapshot(
            self._disk,
            snapshot_path(folder, snapshot_id),
            list(records_of(image)),
            metadata_version=image.metadata_version,
            last_timestamp=now_ms,
            now_ms=now_ms,
            epoch=snapshot_id.epoch,
            quorum=self._quorum(),
        )
        self._size_bytes = 0
        for old in self._log.snapshots()[:-KEPT_SNAPSHOTS]:
            self._disk.unlink(snapshot_path(folder, old), missing_ok=True)

    def _quorum(self) -> list[KRaftVersionRecord | VotersRecord]:
        """The voters, where they are in the log and not in everybody's configuration."""
        image, voters = self._loader.image, self._loader.voters
        if image.kraft_version == 0 or voters is None:
            return []
        return [KRaftVersionRecord(version=0, k_raft_version=image.kraft_version), voters]
