"""`__cluster_metadata-0`: KRaft's log of the cluster, of a quorum whose only voter is this node.

What is in it is committed once it is on the device, for there is nobody else to have it. Whoever listens is given each
batch then, and not before. Source: KIP-595, KIP-630, KIP-853; Kafka's KafkaRaftClient and KafkaMetadataLog.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from coordinator.cluster.quorum import FOLDER, TOPIC_ID, encode_quorum, leader_change
from coordinator.cluster.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from coordinator.cluster.record import MetadataBatch, MetadataRecord, decode_batches, encode_batch
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, leftovers, snapshot_path
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.runtime import Clock
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import QuorumRecord, VotersRecord
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import Report
from storage.log import Log
from storage.producers.entry import Origin

MAX_BATCH_BYTES = 8 << 20
"""Of KRaft's log (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

PIECE_BYTES = 1 << 20
"""How much of the log is read in one go when it is loaded."""

SEGMENT_BYTES = 1 << 30
SEGMENT_MS = 7 * 24 * 60 * 60 * 1000
"""Defaults of metadata.log.segment.bytes and metadata.log.segment.ms."""


def log_config(segment_bytes: int = SEGMENT_BYTES, segment_ms: int = SEGMENT_MS) -> LogConfig:
    """How the log is kept. Nothing of it goes by size or age alone: its records are the cluster, until a snapshot
    stands for them."""
    return LogConfig(
        max_message_bytes=MAX_BATCH_BYTES,
        cleanup_policy=("delete",),
        retention_ms=-1,
        retention_bytes=-1,
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
    )


CONFIG = log_config()

Listener = Callable[[MetadataBatch], None]


class Worker(Protocol):
    """Where work runs that waits for a disk."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Do `work` off the event loop; afterwards call `then` on it, with what `work` raised if it did."""
        ...


class Waiting(NamedTuple):
    """Who is to be told when everything before an offset is committed."""

    offset: int
    committed: asyncio.Future[None]


class MetadataLog:
    """The log, and this node's part in its quorum. Open it with `open_metadata_log`, then `lead` it."""

    def __init__(self, log: Log, quorum: QuorumState, *, disk: Disk, clock: Clock, worker: Worker) -> None:
        self._log = log
        self.epoch = quorum.leader_epoch
        self.failed: KafkaError | None = None
        """Set once a flush failed: nothing more is appended, what was is not known to be there."""
        self.on_failure: Callable[[KafkaError], None] = lambda _: None
        self._disk = disk
        self._clock = clock
        self._worker = worker
        self._listeners: list[Listener] = []
        self._uncommitted: deque[MetadataBatch] = deque()
        self._waiting: deque[Waiting] = deque()
        self._flushing = False

    @property
    def directory(self) -> str:
        """The folder of the log and its snapshots."""
        return self._log.directory

    @property
    def start_offset(self) -> int:
        """The offset of the first record that is still there."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Everything before it is committed."""
        return self._log.high_watermark

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """What was appended and is not committed, in order."""
        return tuple(self._uncommitted)

    def report_failures(self, report: Report) -> None:
        """Have failures of its disk told to `report`, from any thread."""
        self._log.report = report

    def listen(self, listener: Listener) -> None:
        """Have each batch told that is committed from now on, in order."""
        self._listeners.append(listener)

    def lead(self, node_id: int, voters: VotersRecord) -> None:
        """Win an election without opponents: the epoch is one more than any before, it is made durable, and a control
        batch begins it. Returns once that batch, and with it all that there was, is committed.

        Raises LogDirFailure, LogDirFull.
        """
        self.epoch = max(self.epoch, self._log.last_leader_epoch, 0) + 1
        write_quorum_state(self._disk, self._log.directory, QuorumState(leader_id=node_id, leader_epoch=self.epoch))
        now_ms = self._clock.now_ms()
        opening = leader_change(node_id, voters if self.end_offset == 0 else None)
        self._append(encode_quorum(opening, now_ms), (), opening)
        self._log.flush(now_ms)
        self._commit(self.end_offset)

    def append(self, records: Sequence[MetadataRecord], metadata_version: int) -> int:
        """Append the records in one batch; the offset behind it. Raises KafkaError, with nothing written."""
        return self._append(encode_batch(records, metadata_version, self._clock.now_ms()), records, ())

    def _append(self, encoded: bytearray, records: Sequence[MetadataRecord], quorum: Sequence[QuorumRecord]) -> int:
        if self.failed is not None:
            raise self.failed
        now_ms = self._clock.now_ms()
        appended = self._log.append(
            memoryview(encoded), leader_epoch=self.epoch, now_ms=now_ms, origin=Origin.COORDINATOR
        )
        batch = MetadataBatch(
            appended.base_offset, appended.last_offset, self.epoch, len(encoded), now_ms, records, quorum
        )
        self._uncommitted.append(batch)
        return batch.next_offset

    async def committed(self, offset: int) -> None:
        """Returns once everything before `offset` is committed. One flush serves all who came before it began.

        Raises KafkaError where it will not be.
        """
        if self.failed is None and offset > self.high_watermark and not self._flushing:
            self._flush()
        if self.failed is not None:
            raise self.failed
        if offset > self.high_watermark:
            waiting = Waiting(offset, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            await waiting.committed

    def batches(self, offset: int) -> Iterator[MetadataBatch]:
        """The committed batches from this offset on. Raises KafkaError and ProtocolError for what cannot be read."""
        while offset < self.high_watermark:
            result = self._log.read(offset, PIECE_BYTES, max_offset=self.high_watermark)
            if not result.size_bytes:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"nothing to read at offset {offset}")
            for part in result.parts:
                for batch in decode_batches(part):
                    if batch.last_offset >= offset:
                        yield batch
                        offset = batch.next_offset

    def snapshots(self) -> list[SnapshotId]:
        """The snapshots beside the log, oldest first."""
        return find_snapshots(self._disk.listdir(self._log.directory))

    @property
    def size_bytes(self) -> int:
        """Bytes of batches that are still there."""
        return self._log.size_bytes

    def failing(self, doing: str) -> AbstractContextManager[None]:
        """What fails inside is a failure of the log's directory: reported, and raised as LogDirFailure, LogDirFull."""
        return self._log.failing(doing, may_be_full=True)

    def cut(self, offset: int) -> None:
        """Records before the offset, for which a snapshot stands, go with their segments. Raises LogDirFailure."""
        self._log.advance_log_start(offset)
        self._log.apply_retention(self._clock.now_ms())

    def delete_expired(self) -> None:
        """Remove the files of segments that went some time ago; for a worker. Raises LogDirFailure."""
        with self.failing("removing deleted segments of"):
            self._log.segments.delete_expired(self._clock.now_ms())

    def delete_snapshots(self, snapshot_ids: Iterable[SnapshotId]) -> None:
        """Remove snapshots, oldest first; for a worker. Raises LogDirFailure."""
        with self.failing("removing snapshots of"):
            for snapshot_id in snapshot_ids:
                self._disk.unlink(snapshot_path(self.directory, snapshot_id), missing_ok=True)

    def close(self) -> None:
        """Flush and close. Raises LogDirFailure."""
        self._log.flush(self._clock.now_ms())
        self._log.close()

    def _flush(self) -> None:
        self._flushing = True
        now_ms, end_offset = self._clock.now_ms(), self.end_offset

        def flushed(error: BaseException | None) -> None:
            self._flushing = False
            if error is not None:
                self._fail(error)
                return
            try:
                self._commit(end_offset)
            except Exception as failure:  # who sees half of what is committed must not go on
                self._fail(failure)
                return
            if self._waiting and not self._flushing:
                self._flush()

        self._worker.run(lambda: self._log.flush(now_ms), flushed)

    def _commit(self, offset: int) -> None:
        """Everything before the offset is committed: listeners get it, then those are told who wait for it."""
        self._log.update_high_watermark(offset)
        while self._uncommitted and self._uncommitted[0].last_offset < offset:
            batch = self._uncommitted.popleft()
            for listener in self._listeners:
                listener(batch)
        while self._waiting and self._waiting[0].offset <= offset:
            future = self._waiting.popleft().committed
            if not future.done():  # whoever waited may be gone
                future.set_result(None)

    def _fail(self, error: BaseException) -> None:
        message = f"the cluster metadata could not be made durable: {error}"
        self.failed = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._waiting:
            future = self._waiting.popleft().committed
            if not future.done():
                future.set_exception(self.failed)
        self.on_failure(self.failed)


def open_metadata_log(
    log_dir: str, *, disk: Disk, clock: Clock, worker: Worker, config: LogConfig = CONFIG
) -> MetadataLog:
    """Open the log in a log directory, made if it is not there; what a snapshot or its removal left halfway goes.

    A log that is behind its snapshot, by epoch or by offset in the same epoch, begins anew there: it was fetched from a
    leader. Raises LogDirFailure, CorruptCheckpoint.
    """
    folder = os.path.join(log_dir, FOLDER)
    now_ms = clock.now_ms()
    log = Log.open(
        folder, TopicPartition(METADATA_TOPIC, 0), config, disk=disk, now_ms=now_ms, clean=False, topic_id=TOPIC_ID
    )
    for name in leftovers(disk.listdir(folder)):
        disk.unlink(os.path.join(folder, name), missing_ok=True)
    opened = MetadataLog(log, read_quorum_state(disk, folder), disk=disk, clock=clock, worker=worker)
    snapshots = opened.snapshots()
    latest = snapshots[-1] if snapshots else SnapshotId(0, 0)
    if (latest.epoch, latest.offset) > (max(log.last_leader_epoch, 0), log.log_end_offset):
        log.truncate_fully(latest.offset, now_ms)
        log.assign_leader_epoch(latest.epoch, latest.offset)
    opened.delete_snapshots(one for one in snapshots if one.offset < log.log_start_offset)
    return opened
