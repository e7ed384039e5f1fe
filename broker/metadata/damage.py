"""Keeps a controller from leading a metadata log that has lost committed records.

The log of a quorum with one voter is the only copy of the cluster's topics, ACLs and users. If its end is torn, as
after a power loss, it is truncated there: those records were never acknowledged. If whole batches follow a damaged
batch, or other files show that records are missing, the start is rejected, and nothing is changed. A broker that
follows other controllers fetches the lost records again (Kafka's KafkaRaftLog truncates in all cases).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
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
"""The suffix of the file that keeps what was cut; Apache Kafka ignores it."""

FLUSHED = "flushed-offset"
"""The file with the offset before which a voter has flushed its log, and a CRC-32 of it. It is written after each flush
without a flush of its own, so it may be older, but never claims too much. Damage before that offset is no torn end: the
leader may have counted the records. Damage after it is a torn end, even if whole batches follow, because a power cut
may lose any part of what is not flushed. Apache Kafka ignores the file."""

logger = get_logger(__name__)


class LostMetadata(KafkaError):
    """The metadata log has, or may have, lost committed records."""

    def __init__(self, folder: str, reason: str) -> None:
        directory = os.path.dirname(folder)
        super().__init__(
            ErrorCode.CORRUPT_MESSAGE,
            f"{folder}: {reason}. Restore the folder from a backup, or continue without the lost records: `odradek "
            f"log metadata {directory}` shows the remaining records; with --accept, the next start continues from them",
        )


class Evidence(NamedTuple):
    """Facts about the metadata log's end from the files beside it. Collect them before the log is opened."""

    broker_epoch: int
    """The offset of this broker's last registration if the broker was then stopped cleanly; otherwise -1."""
    closed_at: int
    """The offset of the newest producer snapshot, which a clean close writes at the log's end."""
    partition: str | None
    """A folder with the log of a partition; None if there is none."""
    flushed_to: int | None = None
    """The offset before which all records were flushed, of FLUSHED; None if it is unknown."""

    @property
    def is_clean(self) -> bool:
        return self.broker_epoch >= 0


def find_evidence(folder: str, log_dirs: Sequence[str], disk: Disk) -> Evidence:
    """Returns the evidence in the log directories and in the metadata log's folder. Raises OSError."""
    names = disk.listdir(folder) if disk.exists(folder) else []
    closed_at = max((base_offset_of(name) or 0 for name in names if name.endswith(SNAPSHOT)), default=0)
    partitions = (path for directory in log_dirs for path in _stored_partitions(directory, disk))
    flushed_to = read_flushed(folder, disk)
    return Evidence(previous_epoch(disk, log_dirs), closed_at, next(iter(partitions), None), flushed_to)


def write_flushed(folder: str, offset: int, disk: Disk) -> None:
    """Writes FLUSHED after a flush: in place, so that a power cut leaves the old offset or the new one. Raises
    OSError."""
    path, text = os.path.join(folder, FLUSHED), b"%020d" % offset
    is_new = not disk.exists(path)
    handle = disk.open(path, create=is_new)
    try:
        disk.pwritev(handle, [b"%s %08x\n" % (text, zlib.crc32(text))], 0)
        if is_new:
            disk.fsync(handle)
    finally:
        disk.close(handle)
    if is_new:
        disk.fsync_dir(folder)


def remove_flushed(folder: str, disk: Disk) -> None:
    """Removes FLUSHED durably, before records are truncated that were flushed. Raises OSError."""
    disk.unlink(os.path.join(folder, FLUSHED), missing_ok=True)
    disk.fsync_dir(folder)


def read_flushed(folder: str, disk: Disk) -> int | None:
    """Returns the offset in FLUSHED; None if the file is missing, torn or damaged. Raises OSError."""
    try:
        text, _, checksum = disk.read_file(os.path.join(folder, FLUSHED)).strip().partition(b" ")
        return int(text) if int(checksum, 16) == zlib.crc32(text) else None
    except (FileNotFoundError, ValueError):
        return None


def _stored_partitions(directory: str, disk: Disk) -> Iterator[str]:
    with suppress(OSError):
        for path, partition in stored_logs(directory, disk):
            if partition.topic != METADATA_TOPIC:
                yield path


class Guard:
    """Rejects a log that has lost records, unless the operator has accepted the loss."""

    def __init__(
        self, folder: str, evidence: Evidence, disk: Disk, *, accept: bool = False, unwritten_epochs: int = 0
    ) -> None:
        """`unwritten_epochs` is the number of epochs by which `quorum-state` may be ahead of the log: a voter stores
        its election before it writes the first record of its epoch."""
        self._folder = folder
        self._evidence = evidence
        self._disk = disk
        self._accept = accept
        self._unwritten_epochs = unwritten_epochs

    def before_cut(self, cut: Cut) -> None:
        """Saves the bytes that are about to be cut. Raises LostMetadata unless they are a torn end."""
        lost = self._bytes_from(cut.path, cut.position)
        whole = sum(1 for _ in sound_batches(memoryview(lost)))
        if not self._accept:
            where = f"{cut.path} is damaged at byte {cut.position}, offset {cut.offset} ({cut.reason})"
            flushed_to = self._evidence.flushed_to
            if whole and flushed_to is None:
                raise LostMetadata(self._folder, f"{where}, and {whole} whole batches follow: this is not a torn end")
            if self._evidence.is_clean:
                raise LostMetadata(self._folder, f"{where}, although the log was closed cleanly")
            if cut.offset < (flushed_to or 0):
                raise LostMetadata(self._folder, f"{where}, although everything before {flushed_to} was flushed")
        kept = self._keep(cut.offset, lost)
        logger.warning("end of the metadata log cut", cut=str(cut), whole_batches=whole, kept=kept)

    def before_truncation(self, path: str, offset: int, problem: str) -> None:
        """Saves the segment with a batch whose header can't be right, and the later segments. Raises LostMetadata
        unless the loss is accepted.
        """
        if not self._accept:
            raise LostMetadata(self._folder, f"{path} is damaged at offset {offset}: {problem}")
        kept = self._keep(offset, self._bytes_from(path, 0))
        logger.warning("metadata log cut", path=path, offset=offset, reason=problem, kept=kept)

    def _bytes_from(self, path: str, position: int) -> bytes:
        """Returns the bytes of a segment from a position on, and of the later segments."""
        own_name = os.path.basename(path)
        later = sorted(name for name in self._disk.listdir(self._folder) if name.endswith(LOG) and name > own_name)
        files = [self._disk.read_file(os.path.join(self._folder, name)) for name in (own_name, *later)]
        return b"".join((files[0][position:], *files[1:]))

    def _keep(self, offset: int, lost: bytes) -> str:
        """Writes the bytes into a new file, and returns its path. A log may be cut at one offset twice."""
        names = (f"{offset:020d}{f'.{again}' if again else ''}{TORN}" for again in count())
        path = next(path for name in names if not self._disk.exists(path := os.path.join(self._folder, name)))
        self._disk.write_file(path, lost)
        self._disk.fsync_dir(self._folder)
        return path

    def check_epoch(self, last_epoch: int, quorum: QuorumState) -> None:
        """Raises LostMetadata if the log of a voter of several ends in a later epoch than `quorum-state` has, which is
        stored before any record of its epoch: one of the two is damaged. Without `quorum-state`, a voter has the epoch
        of its log."""
        if not self._accept and 0 < quorum.leader_epoch < last_epoch:
            raise LostMetadata(
                self._folder,
                f"it ends in epoch {last_epoch}, but the last epoch in {QUORUM_STATE} is {quorum.leader_epoch}",
            )

    def check(self, end_offset: int, last_epoch: int, snapshots: Sequence[SnapshotId], quorum: QuorumState) -> None:
        """Raises LostMetadata if the log lacks records that other files show."""
        if not self._accept:
            ahead = quorum.leader_epoch - last_epoch
            if ahead > 0 and (ahead <= self._unwritten_epochs or self._evidence.flushed_to is not None):
                quorum = quorum._replace(leader_epoch=last_epoch)
            problem = missing(end_offset, last_epoch, snapshots, quorum, self._evidence)
            if problem is not None:
                raise LostMetadata(self._folder, f"its records end before offset {end_offset}, {problem}")


def missing(
    end_offset: int, last_epoch: int, snapshots: Sequence[SnapshotId], quorum: QuorumState, evidence: Evidence
) -> str | None:
    """Returns the file that shows later records than the log has; None if there is none."""
    latest = snapshots[-1] if snapshots else SnapshotId(0, 0)
    if latest.offset > end_offset:
        return f"and {latest.file_name} has the records before offset {latest.offset}"
    epoch = max(last_epoch, latest.epoch)
    if quorum.leader_epoch > epoch:
        return f"in epoch {epoch}, but {QUORUM_STATE} has epoch {quorum.leader_epoch}"
    if 0 < quorum.leader_epoch < epoch - 1:
        return f"in epoch {epoch}, but the last epoch in {QUORUM_STATE} is {quorum.leader_epoch}"
    if evidence.broker_epoch >= end_offset:
        return f"and {CLEAN_SHUTDOWN} shows that this broker was registered at offset {evidence.broker_epoch}"
    if evidence.is_clean and evidence.closed_at > end_offset:
        snapshot = segment_file(evidence.closed_at, SNAPSHOT)
        return f"and {snapshot} shows that the log was closed at offset {evidence.closed_at}"
    if (evidence.flushed_to or 0) > end_offset:
        return f"and {FLUSHED} shows that everything before offset {evidence.flushed_to} was flushed"
    if not end_offset and evidence.partition is not None:
        return f"and {evidence.partition} has the log of a partition"
    return None
