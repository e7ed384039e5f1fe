"""Loads the image: the latest snapshot, then the log from there on; metadata transactions all or none (KIP-868)."""

from __future__ import annotations

from coordinator.cluster.features import LATEST_METADATA_VERSION
from coordinator.cluster.image import Image
from coordinator.cluster.metadata_log import MetadataLog
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.snapshot import SnapshotId, read_snapshot, snapshot_path
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.metadata_records import decode_record
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.records.batch import iter_batches
from protocol.records.control import KRaftVersionRecord, QuorumRecord, VotersRecord, decode_quorum_record
from protocol.records.record import Record, read_records
from storage.disk import Disk


class Replay:
    """Feeds records, as they are in the log, to an image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._transaction: list[MetadataRecord] | None = None
        self.size_bytes = 0
        """Of what was replayed after the snapshot."""
        self.voters: VotersRecord | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open: its records are void unless its end follows."""
        return self._transaction is not None

    def feed_control(self, said: QuorumRecord | None) -> None:
        """Note what the quorum says of itself."""
        if isinstance(said, KRaftVersionRecord):
            self._image.kraft_version = said.k_raft_version
        elif isinstance(said, VotersRecord):
            self.voters = said

    def feed(self, record: MetadataRecord) -> None:
        """Apply the record, or keep it until its transaction ends."""
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, EndTransactionRecord):
            for kept in self._transaction or ():
                self._image.apply(kept)
            self._transaction = None
        elif isinstance(record, AbortTransactionRecord):
            self._transaction = None
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._image.apply(record)


def load(image: Image, log: MetadataLog, disk: Disk) -> Replay:
    """Bring an empty image to the log's end. Raises KafkaError with the place of what cannot be read."""
    replay = Replay(image)
    start = log.log.log_start_offset
    snapshot = next(iter(reversed(log.snapshots(disk))), None)
    if snapshot is not None:
        _load_snapshot(replay, log, snapshot, disk)
        start = snapshot.offset
    elif start > 0:
        raise _unreadable(log, f"begins at offset {start}, and there is no snapshot of what was before it")
    for piece in log.pieces(start):
        for position, header in iter_batches(piece):
            if header.last_offset >= start:
                replay.size_bytes += header.size_bytes
                for record in read_records(piece, position, header):
                    _feed(replay, log, record, is_control=header.is_control)
    image.offset = log.end_offset - 1
    if image.metadata_version > LATEST_METADATA_VERSION:
        raise _unreadable(
            log, f"is of metadata.version {image.metadata_version}: {LATEST_METADATA_VERSION} is the newest known"
        )
    return replay


def _load_snapshot(replay: Replay, log: MetadataLog, snapshot_id: SnapshotId, disk: Disk) -> None:
    path = snapshot_path(log.log.directory, snapshot_id)
    try:
        snapshot = read_snapshot(disk, path)
        for record in snapshot.records:
            replay.feed(record)
        for said in snapshot.quorum:
            replay.feed_control(said)
    except (KafkaError, ProtocolError, KeyError) as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {error}") from error


def _feed(replay: Replay, log: MetadataLog, record: Record, *, is_control: bool) -> None:
    try:
        if is_control:
            replay.feed_control(decode_quorum_record(record))
        else:
            replay.feed(decode_record(record.value or b""))
    except (ProtocolError, KeyError) as error:
        raise _unreadable(log, f"offset {record.offset}: {error}") from error


def _unreadable(log: MetadataLog, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.log.directory}: {why}")
