"""Keeps a controller from leading a metadata log that has lost committed records.

The log of a quorum with one voter is the only copy of the cluster's topics, ACLs and users. If its end is torn, as a
loss of power leaves it, it is cut there: nobody was told of those records. If whole batches follow a damaged batch, or
other files know of records that the log doesn't have, the start is refused, and nothing is changed. A broker that
follows other controllers fetches again what its log has lost (Kafka's KafkaRaftLog cuts in all cases).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from broker.logging import get_logger
from broker.metadata.node import previous_epoch
from coordinator.cluster.quorum_state import QUORUM_STATE, QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from protocol.errors import ErrorCode, KafkaError
from storage.checkpoint import CLEAN_SHUTDOWN
from storage.disk import Disk
from storage.folders import stored_logs
from storage.names import LOG, SNAPSHOT, base_offset_of, segment_file
from storage.recovering.loaded import Cut
from storage.recovering.salvage import sound_batches

TORN = ".torn"
"""The suffix of the file that keeps what was cut; Apache Kafka passes over it."""

logger = get_logger("broker.metadata")


class LostMetadata(KafkaError):
    """The metadata log has lost records that were committed, or may have been."""

    def __init__(self, folder: str, reason: str) -> None:
        directory = os.path.dirname(folder)
        super().__init__(
            ErrorCode.CORRUPT_MESSAGE,
            f"{folder}: {reason}. Restore the folder from a backup, or go on without the records that are lost: "
            f"`odradek log metadata {directory}` shows what is left, with --accept the next start goes on from there",
        )


class Evidence(NamedTuple):
    """Knowledge of the metadata log's end in the files beside it. Find it before the log is opened."""

    broker_epoch: int
    """The offset of this broker's last registration if it was then stopped in order; else -1."""
    closed_at: int
    """The offset of the newest producer snapshot: a log that is closed in order has a snapshot at its end."""
    partition: str | None
    """A folder with the log of a partition."""

    @property
    def is_clean(self) -> bool:
        return self.broker_epoch >= 0


def find_evidence(folder: str, log_dirs: Sequence[str], disk: Disk) -> Evidence:
    """Returns what there is in the log directories, and in the metadata log's folder. Raises OSError."""
    names = disk.listdir(folder) if disk.exists(folder) else []
    closed_at = max((base_offset_of(name) or 0 for name in names if name.endswith(SNAPSHOT)), default=0)
    partitions = (path for directory in log_dirs for path in _stored_partitions(directory, disk))
    return Evidence(previous_epoch(disk, log_dirs), closed_at, next(iter(partitions), None))


def _stored_partitions(directory: str, disk: Disk) -> Iterator[str]:
    with suppress(OSError):
        for path, partition in stored_logs(directory, disk):
            if partition.topic != METADATA_TOPIC:
                yield path


class Guard:
    """Refuses a log that has lost records, unless the operator has accepted the loss."""

    def __init__(self, folder: str, evidence: Evidence, disk: Disk, *, accept: bool = False) -> None:
        self._folder = folder
        self._evidence = evidence
        self._disk = disk
        self._accept = accept

    def before_cut(self, cut: Cut) -> None:
        """Keeps what is going to be cut. Raises LostMetadata if it is no torn end."""
        lost = self._bytes_from(cut.path, cut.position)
        whole = sum(1 for _ in sound_batches(memoryview(lost)))
        if not self._accept:
            where = f"{cut.path} is damaged at byte {cut.position}, offset {cut.offset} ({cut.reason})"
            if whole:
                raise LostMetadata(self._folder, f"{where}, and {whole} whole batches follow: this is no torn end")
            if self._evidence.is_clean:
                raise LostMetadata(self._folder, f"{where}, though the log was closed in order")
        self._keep(cut.offset, lost)
        logger.warning(
            "end of the metadata log cut", cut=str(cut), whole_batches=whole, kept=self._file_for(cut.offset)
        )

    def before_truncation(self, path: str, offset: int, problem: str) -> None:
        """Keeps the segment with a batch whose header can't be right, and the later segments. Raises LostMetadata
        unless the loss is accepted."""
        if not self._accept:
            raise LostMetadata(self._folder, f"{path} is damaged at offset {offset}: {problem}")
        self._keep(offset, self._bytes_from(path, 0))
        logger.warning("metadata log cut", path=path, offset=offset, reason=problem, kept=self._file_for(offset))

    def _bytes_from(self, path: str, position: int) -> bytes:
        """Returns the bytes of a segment from a position on, with those of the later segments."""
        own_name = os.path.basename(path)
        later = sorted(name for name in self._disk.listdir(self._folder) if name.endswith(LOG) and name > own_name)
        files = [self._disk.read_file(os.path.join(self._folder, name)) for name in (own_name, *later)]
        return b"".join((files[0][position:], *files[1:]))

    def _file_for(self, offset: int) -> str:
        return os.path.join(self._folder, f"{offset:020d}{TORN}")

    def _keep(self, offset: int, lost: bytes) -> None:
        self._disk.write_file(self._file_for(offset), lost)
        self._disk.fsync_dir(self._folder)

    def check(self, end_offset: int, last_epoch: int, snapshots: Sequence[SnapshotId], quorum: QuorumState) -> None:
        """Raises LostMetadata if a log that ends there lacks records that other files know of."""
        if not self._accept:
            problem = missing(end_offset, last_epoch, snapshots, quorum, self._evidence)
            if problem is not None:
                raise LostMetadata(self._folder, f"its records end before offset {end_offset}, {problem}")


def missing(
    end_offset: int, last_epoch: int, snapshots: Sequence[SnapshotId], quorum: QuorumState, evidence: Evidence
) -> str | None:
    """Returns which file knows of later records than those of the log; None if no file does."""
    latest = snapshots[-1] if snapshots else SnapshotId(0, 0)
    if latest.offset > end_offset:
        return f"and {latest.file_name} has those before offset {latest.offset}"
    epoch = max(last_epoch, latest.epoch)
    if quorum.leader_epoch > epoch:
        return f"in epoch {epoch}, and {QUORUM_STATE} says that epoch {quorum.leader_epoch} has begun"
    if 0 < quorum.leader_epoch < epoch - 1:
        return f"in epoch {epoch}, and {QUORUM_STATE} says that epoch {quorum.leader_epoch} is the last"
    if evidence.broker_epoch >= end_offset:
        return f"and {CLEAN_SHUTDOWN} says that this broker was registered at offset {evidence.broker_epoch}"
    if evidence.is_clean and evidence.closed_at > end_offset:
        snapshot = segment_file(evidence.closed_at, SNAPSHOT)
        return f"and {snapshot} says that the log was closed at offset {evidence.closed_at}"
    if not end_offset and evidence.partition is not None:
        return f"and {evidence.partition} has the log of a partition"
    return None
