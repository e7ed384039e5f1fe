"""Loads the image: the latest snapshot, then the committed batches from there on."""

from __future__ import annotations

from broker.metadata.log import MetadataLog
from coordinator.cluster.brokers.features import LATEST_METADATA_VERSION
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.snapshot import SnapshotId, read_snapshot, snapshot_path
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from storage.disk import Disk


def load(loader: MetadataLoader, log: MetadataLog, disk: Disk) -> int:
    """Applies the log's records to an empty image up to the high watermark, and returns the number of bytes read.
    Raises KafkaError, which names the position of unreadable records.
    """
    start = log.start_offset
    snapshot_id = next(iter(reversed(log.snapshots())), None)
    if snapshot_id is not None:
        _load_snapshot(loader, log, snapshot_id, disk)
        start = snapshot_id.offset
    elif start > 0:
        raise _unreadable(log, f"begins at offset {start}, but there is no snapshot of the records before it")
    size_bytes = 0
    try:
        for batch in log.batches(start):
            size_bytes += batch.size_bytes
            loader.commit(batch)
    except (KafkaError, ProtocolError) as error:
        raise _unreadable(log, str(error)) from error
    if loader.image.metadata_version > LATEST_METADATA_VERSION:
        level = loader.image.metadata_version
        raise _unreadable(
            log, (f"has metadata.version {level}; the newest that is supported is {LATEST_METADATA_VERSION}")
        )
    return size_bytes


def _load_snapshot(loader: MetadataLoader, log: MetadataLog, snapshot_id: SnapshotId, disk: Disk) -> None:
    path = snapshot_path(log.directory, snapshot_id)
    try:
        loader.load_snapshot(snapshot_id, read_snapshot(disk, path))
    except (KafkaError, ProtocolError) as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: {error}") from error


def _unreadable(log: MetadataLog, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.directory}: {why}")
