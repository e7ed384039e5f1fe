"""`__cluster_metadata-0`: KRaft's log of the cluster, of a quorum whose only voter is this node.

Opening it means to win an election without opponents: the epoch is one more than any before, it is made durable, and a
control batch begins it. Source: KIP-595, KIP-630, KIP-853; Kafka's KafkaRaftClient and KafkaMetadataLog.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple, Protocol

from coordinator.cluster.broker_info import Endpoint
from coordinator.cluster.names import METADATA_TOPIC
from coordinator.cluster.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from coordinator.cluster.snapshot import SnapshotId, find_snapshots
from coordinator.runtime import Clock
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.records.control import (
    ChangeVoter,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VoterEndpoint,
    VotersRecord,
    quorum_record,
)
from protocol.types import Buffer, TopicPartition, Uuid
from storage.config import LogConfig
from storage.disk import Disk
from storage.log import Log
from storage.producer_entry import Origin

FOLDER = f"{METADATA_TOPIC}-0"
TOPIC_ID: Uuid = bytes(15) + b"\x01"
"""The metadata topic's id in every cluster (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID)."""

MAX_BATCH_BYTES = 8 << 20
"""Of KRaft's log (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

PIECE_BYTES = 1 << 20
"""How much of the log is read in one go when it is loaded."""

KRAFT_VERSION = 1
"""Voters are in the log (KIP-853): what `kafka-storage format --standalone` makes."""

CONFIG = LogConfig(max_message_bytes=MAX_BATCH_BYTES, cleanup_policy=("delete",), retention_ms=-1, retention_bytes=-1)
"""Nothing of it is ever deleted: its records are the cluster."""


class Worker(Protocol):
    """Where work runs that waits for a disk."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        """Do `work` off the event loop; afterwards call `then` on it, with what `work` raised if it did."""
        ...


class Waiting(NamedTuple):
    """Who is to be told when everything before an offset is on the device."""

    offset: int
    then: Callable[[KafkaError | None], None]


class MetadataLog:
    """The log under the image: `coordinator.runtime.Storage`, where committed means flushed."""

    def __init__(self, log: Log, epoch: int, clock: Clock, worker: Worker) -> None:
        self.log = log
        self.epoch = epoch
        self.failed: KafkaError | None = None
        """Set once a flush failed: nothing more is appended, what was is not known to be there."""
        self.appended_bytes = 0
        """Of what was appended since the log was opened."""
        self._clock = clock
        self._worker = worker
        self._waiting: deque[Waiting] = deque()
        self._flushing = False

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.log.log_end_offset

    @property
    def flushed_to(self) -> int:
        """The high watermark of a quorum of one: everything before it is on the device."""
        return self.log.recovery_point

    def append(self, batches: bytearray) -> int:
        """Append at the end; the offset after the last record. Raises KafkaError."""
        if self.failed is not None:
            raise self.failed
        appended = self.log.append(
            memoryview(batches), leader_epoch=self.epoch, now_ms=self._clock.now_ms(), origin=Origin.COORDINATOR
        )
        self.appended_bytes += len(batches)
        return appended.last_offset + 1

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Call `then` once everything before `offset` is flushed. One flush serves all who came before it began."""
        if self.failed is not None:
            then(self.failed)
        elif offset <= self.flushed_to and not self._waiting:
            then(None)
        else:
            self._waiting.append(Waiting(offset, then))
            self._flush()

    async def read(self) -> AsyncIterator[Buffer]:
        """Everything in the log."""
        for piece in self.pieces(self.log.log_start_offset):
            yield piece

    def pieces(self, offset: int) -> Iterator[Buffer]:
        """The log's batches from this offset, the first of which may begin before it."""
        while offset < self.end_offset:
            result = self.log.read(offset, PIECE_BYTES)
            for part in result.parts:
                for _, header in batch.iter_batches(part):
                    offset = header.next_offset
                yield part
            if not result.size_bytes:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.log.directory}: nothing to read at offset {offset}")

    def snapshots(self, disk: Disk) -> list[SnapshotId]:
        """The snapshots beside the log, oldest first."""
        return find_snapshots(disk.listdir(self.log.directory))

    def close(self) -> None:
        """Flush and close. Raises LogDirFailure."""
        self.log.flush(self._clock.now_ms())
        self.log.close()

    def _flush(self) -> None:
        if not self._flushing:
            self._flushing = True
            now_ms = self._clock.now_ms()
            self._worker.run(lambda: self.log.flush(now_ms), self._flushed)

    def _flushed(self, error: BaseException | None) -> None:
        self._flushing = False
        if error is not None:
            self._fail(error)
            return
        while self._waiting and self._waiting[0].offset <= self.flushed_to:
            self._waiting.popleft().then(None)
        if self._waiting:
            self._flush()

    def _fail(self, error: BaseException) -> None:
        message = f"the cluster metadata could not be made durable: {error}"
        self.failed = error if isinstance(error, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        while self._waiting:
            self._waiting.popleft().then(self.failed)


def open_metadata_log(
    log_dir: str, node_id: int, voters: VotersRecord, *, disk: Disk, clock: Clock, worker: Worker
) -> MetadataLog:
    """Open the log in a log directory, made if it is not there, and lead it in a new epoch.

    A log that ends before its snapshot does, as one that was fetched from a leader may, begins anew at the snapshot.
    Raises LogDirFailure, CorruptCheckpoint.
    """
    folder = os.path.join(log_dir, FOLDER)
    now_ms = clock.now_ms()
    log = Log.open(
        folder, TopicPartition(METADATA_TOPIC, 0), CONFIG, disk=disk, now_ms=now_ms, clean=False, topic_id=TOPIC_ID
    )
    snapshot = next(iter(reversed(find_snapshots(disk.listdir(folder)))), None)
    if snapshot is not None and snapshot.offset > log.log_end_offset:
        log.truncate_fully(snapshot.offset, now_ms)
        log.assign_leader_epoch(snapshot.epoch, snapshot.offset)
    epoch = max(read_quorum_state(disk, folder).leader_epoch, log.last_leader_epoch, 0) + 1
    write_quorum_state(disk, folder, QuorumState(leader_id=node_id, leader_epoch=epoch))
    opened = MetadataLog(log, epoch, clock, worker)
    opened.append(_beginning(node_id, voters if opened.end_offset == 0 else None, now_ms))
    return opened


def _beginning(node_id: int, voters: VotersRecord | None, now_ms: int) -> bytearray:
    """The control batch that begins an epoch; the log's first one also says who the voters are."""
    self_only = [ChangeVoter(voter_id=node_id)]
    change = LeaderChangeMessage(version=0, leader_id=node_id, voters=self_only, granting_voters=self_only)
    records = [quorum_record(change, now_ms)]
    if voters is not None:
        records.append(quorum_record(KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION), now_ms))
        records.append(quorum_record(voters, now_ms))
    return batch.build(records, control=True)


def sole_voter(node_id: int, directory_id: Uuid, endpoint: Endpoint) -> VotersRecord:
    """The voters of a quorum of this node alone."""
    voter = Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[VoterEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION),
    )
    return VotersRecord(version=0, voters=[voter])
