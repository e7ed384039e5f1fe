"""Snapshots of the metadata log, and the bootstrap checkpoint, which has the same format (KIP-630).

A snapshot is a file of batches: a control batch with the header, the records as in the log, a control batch with the
footer. `<20-digit offset>-<10-digit epoch>.checkpoint` replaces all records before that offset.

Source: Kafka's Snapshots, RecordsSnapshotWriter, BootstrapDirectory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.cluster.quorum import FOLDER
from coordinator.cluster.record import MetadataRecord, log_record
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.metadata_records import decode_record
from protocol.records.batch import CONTROL, check_crc, iter_batches
from protocol.records.building import build
from protocol.records.control import (
    KRaftVersionRecord,
    QuorumRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_quorum_record,
    quorum_record,
)
from protocol.records.record import Record, read_records
from protocol.types import Buffer
from storage.disk import Disk

BOOTSTRAP = "bootstrap.checkpoint"
PARTIAL = ".checkpoint.part"
DELETED = ".checkpoint.deleted"
"""The suffixes of an unfinished snapshot and of a deleted snapshot (org.apache.kafka.snapshot.Snapshots)."""

HEAD_BYTES = 4_096
"""Bytes at the start of a file that contain its header, and the voters of a large quorum."""

CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

RECORDS_PER_BATCH = 1_000
"""Records in a batch of a snapshot, few enough to keep the memory of its readers small."""


class SnapshotId(NamedTuple):
    """The identity of a snapshot: it replaces all records before `offset`, and `epoch` is the epoch of the last of
    them.
    """

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}.checkpoint"


class Snapshot(NamedTuple):
    """The content of a snapshot file: the state as records, and the quorum's own records."""

    records: list[MetadataRecord]
    quorum: list[QuorumRecord]

    @property
    def last_timestamp_ms(self) -> int:
        """The timestamp of the last record that the snapshot replaces."""
        return next(
            (record.last_contained_log_timestamp for record in self.quorum if isinstance(record, SnapshotHeaderRecord)),
            0,
        )


class SnapshotFile(NamedTuple):
    """A snapshot on disk."""

    snapshot_id: SnapshotId
    size_bytes: int
    last_timestamp_ms: int
    """The timestamp of the last record that it replaces; 0 if its header can't be read."""


def find_snapshots(names: Iterable[str]) -> list[SnapshotId]:
    """Returns the snapshots among a folder's files, oldest first. They are sorted by epoch, because after a truncation
    a later epoch may have the same offsets again.
    """
    matches = (CHECKPOINT.fullmatch(name) for name in names)
    ids = (SnapshotId(int(match[1]), int(match[2])) for match in matches if match)
    return sorted(ids, key=lambda snapshot_id: (snapshot_id.epoch, snapshot_id.offset))


def read_bootstrap(disk: Disk, metadata_dir: str) -> list[MetadataRecord] | None:
    """Returns the first records of a new cluster: of the bootstrap checkpoint, or of the snapshot at offset 0, into
    which kafka-storage of Kafka 4.4 writes them (KIP-1170); None without either. Raises KafkaError(CORRUPT_MESSAGE),
    ProtocolError, OSError.
    """
    for name in (BOOTSTRAP, os.path.join(FOLDER, SnapshotId(0, 0).file_name)):
        with suppress(FileNotFoundError):
            if records := read_snapshot(disk, os.path.join(metadata_dir, name)).records:
                return records
    return None


def read_snapshot(disk: Disk, path: str) -> Snapshot:
    """Returns the content of the file. Raises KafkaError(CORRUPT_MESSAGE) or ProtocolError if it is damaged or
    incomplete.
    """
    data = disk.read_file(path)
    snapshot = Snapshot([], [])
    for record, is_control in _records(path, data):
        if not is_control:
            snapshot.records.append(decode_record(record.value or b""))
        elif (quorum_record := decode_quorum_record(record)) is not None:
            snapshot.quorum.append(quorum_record)
    if not snapshot.quorum or not isinstance(snapshot.quorum[-1], SnapshotFooterRecord):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path} has no footer: it is incomplete")
    return snapshot


def stat_snapshot(disk: Disk, folder: str, snapshot_id: SnapshotId) -> SnapshotFile:
    """Returns a snapshot's size and age, which it reads from the header. Raises OSError."""
    path = snapshot_path(folder, snapshot_id)
    handle = disk.open(path, writable=False)
    try:
        size_bytes = disk.size(handle)
        head = disk.pread(handle, min(size_bytes, HEAD_BYTES), 0)
    finally:
        disk.close(handle)
    timestamp_ms = 0
    with suppress(KafkaError, ProtocolError):
        for record, is_control in _records(path, head):
            quorum_record = decode_quorum_record(record) if is_control else None
            if isinstance(quorum_record, SnapshotHeaderRecord):
                timestamp_ms = quorum_record.last_contained_log_timestamp
                break
    return SnapshotFile(snapshot_id, size_bytes, timestamp_ms)


def leftovers(names: Iterable[str]) -> list[str]:
    """Returns the files of incomplete and of deleted snapshots."""
    return [name for name in names if name.endswith((PARTIAL, DELETED))]


def _records(path: str, data: Buffer) -> Iterator[tuple[Record, bool]]:
    """Yields each record, and True if it is a record of the quorum."""
    for position, header in iter_batches(data):
        if not check_crc(data, position, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{path}: the batch at byte {position} is damaged")
        for record in read_records(data, position, header):
            yield record, bool(header.attributes & CONTROL)


def write_snapshot(
    disk: Disk,
    path: str,
    records: Sequence[MetadataRecord],
    *,
    metadata_version: int,
    last_timestamp: int,
    now_ms: int,
    epoch: int = 0,
    quorum: Sequence[KRaftVersionRecord | VotersRecord] = (),
) -> None:
    """Writes a snapshot under another name, and renames it when it is complete and flushed. `last_timestamp` is the
    timestamp of the last record that it replaces. Raises OSError.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp)
    opening = [quorum_record(record, now_ms) for record in (header, *quorum)]
    closing = [quorum_record(SnapshotFooterRecord(version=0), now_ms)]
    body = [log_record(record, metadata_version, now_ms) for record in records]
    out = build(opening, control=True, partition_leader_epoch=epoch)
    offset = len(opening)
    for start in range(0, len(body), RECORDS_PER_BATCH):
        part = body[start : start + RECORDS_PER_BATCH]
        out += build(part, base_offset=offset, partition_leader_epoch=epoch)
        offset += len(part)
    out += build(closing, control=True, base_offset=offset, partition_leader_epoch=epoch)
    partial = f"{path}.part"
    disk.write_file(partial, out)
    disk.rename(partial, path)
    disk.fsync_dir(os.path.dirname(path))


def snapshot_path(folder: str, snapshot_id: SnapshotId) -> str:
    """Returns the path of the snapshot in the metadata log's folder."""
    return os.path.join(folder, snapshot_id.file_name)
