"""When the metadata log's snapshot is renewed, so that a start replays little however long the log is (KIP-630)."""

from __future__ import annotations

from coordinator.cluster.image import Image
from coordinator.cluster.image_records import records_of
from coordinator.cluster.metadata_log import MetadataLog
from coordinator.cluster.replay import Replay
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

    def __init__(self, image: Image, log: MetadataLog, replay: Replay, disk: Disk, clock: Clock) -> None:
        self._image = image
        self._log = log
        self._replay = replay
        self._disk = disk
        self._clock = clock

    def write_if_due(self) -> None:
        """Flush the log and stand for all of it. Raises LogDirFailure, OSError."""
        if self._replay.size_bytes + self._log.appended_bytes < SNAPSHOT_AFTER_BYTES:
            return
        now_ms = self._clock.now_ms()
        self._log.log.flush(now_ms)
        snapshot_id = SnapshotId(self._log.end_offset, self._log.epoch)
        write_snapshot(
            self._disk,
            snapshot_path(self._log.log.directory, snapshot_id),
            list(records_of(self._image)),
            metadata_version=self._image.metadata_version,
            last_timestamp=now_ms,
            now_ms=now_ms,
            epoch=snapshot_id.epoch,
            quorum=self._quorum(),
        )
        self._replay.size_bytes = self._log.appended_bytes = 0
        for old in self._log.snapshots(self._disk)[:-KEPT_SNAPSHOTS]:
            self._disk.unlink(snapshot_path(self._log.log.directory, old), missing_ok=True)

    def _quorum(self) -> list[KRaftVersionRecord | VotersRecord]:
        """The voters, where they are in the log and not in everybody's configuration."""
        if self._image.kraft_version == 0 or self._replay.voters is None:
            return []
        return [KRaftVersionRecord(version=0, k_raft_version=self._image.kraft_version), self._replay.voters]
