"""Partition: a log with its leader epoch, its in-sync replicas, its high watermark and last stable offset.

Handlers and coordinators talk to Partition, never to Log, and wait for commits through it, so that replication later
changes this room only. On one node the in-sync set is {self} and the high watermark moves with the append.
Source: kafka.cluster.Partition.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.waiting import Waiter
from coordinator.cluster import names
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader
from protocol.types import TopicPartition, Uuid
from storage.cold import ColdRead
from storage.config import LogConfig
from storage.epochs import EpochEndOffset
from storage.log import Appended, Log
from storage.offsets_for_time import TimestampAndOffset
from storage.producer_entry import Origin, ProducerEntry, Verification
from storage.read import ReadResult
from storage.txn_index import AbortedTxn

if TYPE_CHECKING:
    from broker.disk_work import DiskWork

NO_EPOCH: Final = -1
"""A client that does not know the leader epoch skips the check (KIP-320)."""

HIGH_WATERMARK: Final = -1
"""What DeleteRecords has for "all that there is"."""

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels, as Fetch and ListOffsets carry them (KIP-98)."""


class Fetched(NamedTuple):
    """What one partition answers to a Fetch."""

    read: ReadResult
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Partition:
    """This broker's replica of one partition, and its leader."""

    __slots__ = ("leader_epoch", "leader_id", "log", "name", "topic_id", "waiters")

    def __init__(self, name: TopicPartition, topic_id: Uuid, log: Log, leader_id: int, leader_epoch: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.waiters: set[Waiter] = set()

    @property
    def high_watermark(self) -> int:
        """The offset behind the last committed record."""
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided."""
        unstable = self.log.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self.log.log_end_offset

    @property
    def log_dir(self) -> str:
        """Which of log.dirs the replica is in."""
        return self.log.log_dir

    @property
    def config(self) -> LogConfig:
        """The topic's options."""
        return self.log.config

    @property
    def flushes(self) -> bool:
        """True where flush.messages may make a producer wait for the disk."""
        return self.log.flushes

    @property
    def must_flush(self) -> bool:
        """True where what was appended is to be flushed before it is acknowledged."""
        return self.log.must_flush

    @property
    def producers(self) -> Collection[ProducerEntry]:
        """The producers that the log remembers."""
        return self.log.producer_state.producers.values()

    def fetch_limit(self, isolation_level: int) -> int:
        """The offset a consumer may read up to."""
        return self.high_watermark if isolation_level == READ_UNCOMMITTED else self.last_stable_offset

    def append(
        self, records: memoryview, now_ms: int, origin: Origin = Origin.CLIENT, guard: Verification | None = None
    ) -> Appended:
        """Appends and wakes who waits for it; raises KafkaError with nothing written. `guard` is what
        `start_verification` gave for a transaction's first records."""
        log = self.log
        appended = log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin, guard=guard)
        log.update_high_watermark(log.log_end_offset)
        if self.waiters:
            held_back = log.first_unstable_offset is not None
            for waiter in tuple(self.waiters):
                if not (held_back and waiter.committed_only):
                    waiter.appended(len(records))
        return appended

    def start_verification(self, header: BatchHeader, *, supports_epoch_bump: bool, now_ms: int) -> Verification | None:
        """What a transactional batch needs to be appended once its coordinator has vouched for it; None when its
        transaction is known to be open here. Raises INVALID_PRODUCER_EPOCH (KIP-890)."""
        return self.log.producer_state.start_verification(
            header.producer_id,
            header.base_sequence,
            header.producer_epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of the producer is open here. Raises INVALID_PRODUCER_EPOCH if it was shut out."""
        entry = self.log.producer_state.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} is at epoch {entry.epoch}, not at {epoch}"
            )
        return entry is not None and entry.has_ongoing_transaction(epoch)

    def end_transaction(self, marker: memoryview, transaction_version: int, now_ms: int) -> int:
        """Appends the marker that commits or aborts a producer's transaction; the offset behind it. Raises KafkaError
        with nothing written: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

        Whoever waits looks again: what was held back until now may be all that it waits for.
        """
        log = self.log
        log.append(
            marker,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        log.update_high_watermark(log.log_end_offset)
        self.wake_all()
        return log.log_end_offset

    def fetch(self, offset: int, max_bytes: int, isolation_level: int, at_least_one: bool) -> Fetched:
        """Whole batches from the one that holds `offset` on; raises KafkaError OFFSET_OUT_OF_RANGE."""
        limit = self.fetch_limit(isolation_level)
        read = self.log.read(offset, max_bytes, max_offset=limit, min_one=at_least_one)
        return Fetched(read, self.high_watermark, self.last_stable_offset, self.log.log_start_offset)

    def cold_read(self, offset: int, max_bytes: int) -> ColdRead | None:
        """What of a read would wait for the device; None when nothing is known to."""
        return self.log.cold_read(offset, max_bytes)

    def aborted_in(self, read: ReadResult) -> list[AbortedTxn]:
        """The aborted transactions that a read-committed consumer has to leave out of what was read."""
        return self.log.aborted_in(read)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record with this timestamp or a later one; None when there is none."""
        return self.log.offset_for_timestamp(timestamp)

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The record with the largest timestamp; None when none has one."""
        return self.log.max_timestamp()

    @property
    def last_leader_epoch(self) -> int:
        """The epoch of the last record, or of the leadership that has written none yet; -1 when there was none."""
        return self.log.last_leader_epoch

    @property
    def first_leader_epoch(self) -> int:
        """The epoch of the first record; -1 when it is not known."""
        epoch = self.log.epochs.epoch_for_offset(self.log.log_start_offset)
        return NO_EPOCH if epoch is None else epoch

    def end_of_epoch(self, leader_epoch: int) -> EpochEndOffset:
        """The largest epoch up to the given one, and the offset behind its last record; both -1 when unknown."""
        return self.log.epochs.end_offset_for(leader_epoch, self.log.log_end_offset)

    def segments_written(self, now_ms: int) -> list[tuple[int, int]]:
        """Of each segment its first offset and when it was written to last, in ms; then the high watermark, as of now,
        unless the last segment is empty."""
        places = [(max(one.base_offset, self.log.log_start_offset), one.modified_ms()) for one in self.log.segments]
        if self.log.segments.active.size_bytes:
            places.append((self.high_watermark, now_ms))
        return places

    def forget_producers(self, now_ms: int) -> None:
        """Forgets the producers that have been silent for producer.id.expiration.ms."""
        self.log.producer_state.remove_expired(now_ms)

    async def flushed(self, disk_work: DiskWork) -> None:
        """Returns when everything that was appended is on the device. Raises LogDirFailure, LogDirFull."""
        await disk_work.flushed(self.log)

    def advance_log_start(self, offset: int) -> None:
        """Deletes the records below the offset. Raises OFFSET_OUT_OF_RANGE beyond the high watermark."""
        self.log.advance_log_start(offset)

    def delete_records(self, offset: int) -> int:
        """Moves the log start offset up to `offset`, -1 for the high watermark; the log start offset from then on.
        Raises KafkaError: POLICY_VIOLATION on a topic that is only compacted, OFFSET_OUT_OF_RANGE beyond the end."""
        config = self.log.config
        if names.is_internal(self.name.topic):
            message = f"{self.name.topic} is internal: its records cannot be deleted"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        if config.compact and not config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self.name.topic} is compacted: its records cannot be deleted"
            )
        if offset < HIGH_WATERMARK:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name}: {offset} is no offset")
        self.log.advance_log_start(self.high_watermark if offset == HIGH_WATERMARK else offset)
        self.wake_all()
        return self.log.log_start_offset

    def check_end_of_transaction(self, marker: memoryview, transaction_version: int) -> None:
        """Raises what `end_transaction` would raise of the producer and its coordinator; writes nothing."""
        self.log.check_marker(marker, transaction_version)

    def epoch_error(self, current_leader_epoch: int) -> ErrorCode:
        """What the client's idea of the leader epoch deserves: it is behind, ahead, or right (KIP-320)."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        return (
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )

    def wake_all(self) -> None:
        """Something other than an append happened: whoever waits looks again."""
        for waiter in tuple(self.waiters):
            waiter.wake()
