"""`__cluster_metadata-0`: KRaft's log of the cluster, with its snapshots beside it.

The node leads it (`led_log.py`) or follows its leader (`followed_log.py`). Listeners get each batch once it is
committed, and not before.

Source: KIP-595, KIP-630, KIP-853; Kafka's KafkaMetadataLog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from broker.clock import Clock
from broker.logging import get_logger
from broker.metadata.damage import Guard
from coordinator.cluster.quorum import FOLDER, TOPIC_ID
from coordinator.cluster.quorum_state import NOBODY, QuorumState, read_quorum_state
from coordinator.cluster.record import MetadataBatch, decode_batches
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, leftovers, snapshot_path
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.pieces import SnapshotPiece
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_batches
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import Report
from storage.log import Log
from storage.recovering.loaded import Cut

MAX_BATCH_BYTES = 8 << 20
"""Maximum size of a batch of KRaft's log (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

READ_BYTES = 1 << 20
"""Bytes of the log in one read while it is loaded."""

SEGMENT_BYTES = 1 << 30
SEGMENT_MS = 7 * 24 * 60 * 60 * 1000
"""Defaults of metadata.log.segment.bytes and metadata.log.segment.ms."""


def log_config(segment_bytes: int = SEGMENT_BYTES, segment_ms: int = SEGMENT_MS) -> LogConfig:
    """Returns the metadata log's configuration. No segment is deleted by size or age alone, because its records are the
    cluster's state until a snapshot covers them.
    """
    return LogConfig(
        max_message_bytes=MAX_BATCH_BYTES,
        cleanup_policy=("delete",),
        retention_ms=-1,
        retention_bytes=-1,
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
    )


CONFIG = log_config()

L = TypeVar("L", bound="MetadataLog")

Listener = Callable[[MetadataBatch], Iterator[None] | None]
"""Called with a committed batch. Returns an iterator if it handles a large batch in slices."""

RoleListener = Callable[[str, int], None]
"""Called with this node's role in the quorum, and the leader."""

logger = get_logger(__name__)


class Worker(Protocol):
    """Runs work that waits for a disk."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Calls `work` off the event loop, then `then` on the event loop, with the error of `work` if it raised one."""
        ...


class MetadataLog:
    """The log, led or followed. Open it with `open_metadata_log`."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: Clock, worker: Worker) -> None:
        self._log = log
        self.epoch = quorum.leader_epoch
        self.leader_id = quorum.leader_id
        """The node that leads in this epoch, as far as this node knows; -1 if no leader is known."""
        self._disk = disk
        self._clock = clock
        self._worker = worker
        self._listeners: list[Listener] = []
        self._role_listeners: list[RoleListener] = []

    @property
    def directory(self) -> str:
        """The folder of the log and its snapshots."""
        return self._log.directory

    @property
    def start_offset(self) -> int:
        """The offset of the log's first record."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    @property
    def end_epoch(self) -> int:
        """The epoch of the last record; 0 if there is none."""
        return max(self._log.last_leader_epoch, 0)

    @property
    def high_watermark(self) -> int:
        """The offset before which all records are committed."""
        return self._log.high_watermark

    @property
    def role(self) -> str:
        """This node's role in the quorum, as Kafka's metric current-state names it."""
        return "observer"

    @property
    def voted_id(self) -> int:
        """The node that this node has voted for in this epoch; -1 for none."""
        return NOBODY

    def report_failures(self, report: Report) -> None:
        """Reports failures of the log's disk to `report`, from any thread."""
        self._log.report = report

    def listen(self, listener: Listener) -> None:
        """Calls `listener` with each later committed batch, in order."""
        self._listeners.append(listener)

    def listen_to_role(self, listener: RoleListener) -> None:
        """Calls `listener` with `role` and `leader_id` after each change of the leader, the epoch or the role."""
        self._role_listeners.append(listener)

    def batches(self, offset: int) -> Iterator[MetadataBatch]:
        """Yields the committed batches from this offset on. Raises KafkaError and ProtocolError for unreadable
        batches.
        """
        return self._read(offset, self.high_watermark)

    def _read(self, offset: int, end_offset: int) -> Iterator[MetadataBatch]:
        while offset < end_offset:
            result = self._log.read(offset, READ_BYTES, max_offset=end_offset)
            if not result.size_bytes:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"nothing to read at offset {offset}")
            for part in result.parts:
                for batch in decode_batches(part):
                    if batch.last_offset >= offset:
                        yield batch
                        offset = batch.next_offset

    def snapshots(self) -> list[SnapshotId]:
        """Returns the snapshots beside the log, oldest first."""
        return find_snapshots(self._disk.listdir(self._log.directory))

    @property
    def size_bytes(self) -> int:
        """The size of the log's batches."""
        return self._log.size_bytes

    def failing(self, doing: str) -> AbstractContextManager[None]:
        """Reports disk errors of the block as failures of the log's directory, and raises them as LogDirFailure,
        LogDirFull.
        """
        return self._log.failing(doing, may_be_full=True)

    def cut(self, offset: int) -> None:
        """Moves the log start to the offset of a snapshot, and deletes the segments before it. Raises LogDirFailure."""
        self._log.advance_log_start(offset)
        self._log.apply_retention(self._clock.now_ms())

    def delete_expired(self) -> None:
        """Removes the files of segments whose deletion delay is over. For a worker thread. Raises LogDirFailure."""
        with self.failing("removing deleted segments of"):
            self._log.segments.delete_expired(self._clock.now_ms())

    def delete_snapshots(self, snapshot_ids: Iterable[SnapshotId]) -> None:
        """Removes snapshots, oldest first. For a worker thread. Raises LogDirFailure."""
        with self.failing("removing snapshots of"):
            for snapshot_id in snapshot_ids:
                self._disk.unlink(snapshot_path(self.directory, snapshot_id), missing_ok=True)

    def read_snapshot_piece(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> SnapshotPiece | None:
        """Reads a piece of a snapshot. For a worker thread. Returns None if the snapshot is gone. Raises
        LogDirFailure.
        """
        with self.failing("reading a snapshot of"):
            try:
                handle = self._disk.open(snapshot_path(self.directory, snapshot_id), writable=False)
            except FileNotFoundError:
                return None
            try:
                size_bytes = self._disk.size(handle)
                if not 0 <= position < size_bytes:
                    return SnapshotPiece(b"", size_bytes)
                return SnapshotPiece(
                    self._disk.pread(handle, min(max_bytes, size_bytes - position), position), size_bytes
                )
            finally:
                self._disk.close(handle)

    def close(self) -> None:
        """Flushes and closes the log. Raises LogDirFailure."""
        self._log.flush(self._clock.now_ms())
        self._log.close()

    def _notify(self, batch: MetadataBatch) -> Iterator[None]:
        for listener in self._listeners:
            yield from listener(batch) or ()


def open_metadata_log(
    kind: type[L],
    log_dir: str,
    *,
    disk: Disk,
    clock: Clock,
    worker: Worker,
    config: LogConfig = CONFIG,
    guard: Guard | None = None,
    is_only_copy: Callable[[L], bool] = lambda _: True,
) -> L:
    """Opens the log in a log directory, as a log of this `kind`; creates it if it is missing, and removes the leftovers
    of an interrupted snapshot or removal.

    A `guard` rejects a damaged log and, if it is the only copy, a log that has lost records. A voter of several may
    lack its last records if they were never flushed, because the others have them. Without a guard, damaged records are
    truncated. A log that ends before its snapshot, by epoch or by offset in the same epoch, starts again after the
    snapshot: a leader has all records. Raises LogDirFailure, CorruptCheckpoint, LostMetadata.
    """
    folder = os.path.join(log_dir, FOLDER)
    now_ms = clock.now_ms()
    log = Log.open(
        folder,
        TopicPartition(METADATA_TOPIC, 0),
        config,
        disk=disk,
        now_ms=now_ms,
        clean=False,
        topic_id=TOPIC_ID,
        before_cut=_tell_cut if guard is None else guard.before_cut,
    )
    _cut_at_fault(log, now_ms, guard)
    for name in leftovers(disk.listdir(folder)):
        disk.unlink(os.path.join(folder, name), missing_ok=True)
    quorum = read_quorum_state(disk, folder)
    metadata_log = kind(log, quorum, disk=disk, clock=clock, worker=worker)
    snapshots = metadata_log.snapshots()
    if guard is not None and is_only_copy(metadata_log):
        guard.check(log.log_end_offset, max(log.last_leader_epoch, 0), snapshots, quorum)
    elif guard is not None:
        guard.check_epoch(log.last_leader_epoch, quorum)
    latest = snapshots[-1] if snapshots else SnapshotId(0, 0)
    if (latest.epoch, latest.offset) > (max(log.last_leader_epoch, 0), log.log_end_offset):
        log.truncate_fully(latest.offset, now_ms)
        log.assign_leader_epoch(latest.epoch, latest.offset)
    metadata_log.delete_snapshots(snapshot for snapshot in snapshots if snapshot.offset < log.log_start_offset)
    return metadata_log


def _tell_cut(cut: Cut) -> None:
    logger.warning("damaged metadata records cut: the controllers have them", cut=str(cut))


def _cut_at_fault(log: Log, now_ms: int, guard: Guard | None) -> None:
    """Truncates the log before the first batch whose base offset or leader epoch, which no CRC covers, can't be right.
    Raises LostMetadata if the guard rejects that.
    """
    fault = _first_fault(log)
    if fault is None:
        return
    offset, problem = fault
    path = log.segments.since(offset)[0].path
    if guard is None:
        logger.warning(
            "damaged metadata records cut: the controllers have them", path=path, offset=offset, reason=problem
        )
    else:
        guard.before_truncation(path, offset, problem)
    log.truncate_to(offset, now_ms)


def _first_fault(log: Log) -> tuple[int, str] | None:
    """Returns the offset of the first invalid batch, with the reason; None if each batch continues the previous one."""
    offset, epoch, end_offset = log.log_start_offset, 0, log.log_end_offset
    while offset < end_offset:
        parts = log.read(offset, READ_BYTES, max_offset=end_offset).parts
        for header in (header for part in parts for _, header in iter_batches(part)):
            if header.base_offset > offset:
                return offset, f"the next batch begins at offset {header.base_offset}"
            if header.partition_leader_epoch < epoch:
                return offset, f"its epoch is {header.partition_leader_epoch}, after epoch {epoch}"
            if header.partition_leader_epoch > epoch > 0 and not header.is_control:
                return (
                    offset,
                    f"epoch {header.partition_leader_epoch} does not begin with a leader change",
                )
            offset, epoch = max(offset, header.next_offset), header.partition_leader_epoch
        if not parts:
            return offset, "nothing can be read there"
    return None
