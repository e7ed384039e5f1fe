"""Replica: a log of this broker as the rest of the broker reads it, whichever broker leads its partition.

Code outside this folder doesn't use its `log`, so that uncommitted records can't be mistaken for committed records.

Source: the reads of kafka.log.UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from coordinator.replication.roles import NO_EPOCH
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader
from protocol.types import TopicPartition, Uuid
from storage.cold import ColdRead
from storage.config import LogConfig
from storage.epochs import EpochEnd
from storage.log import Log
from storage.producers.entry import ProducerEntry, Verification
from storage.read import ReadResult
from storage.segment.file import EMPTY
from storage.segment.offsets_for_time import Looked, TimestampAndOffset
from storage.segment.txn_index import AbortedTxn

if TYPE_CHECKING:
    from broker.disks.work import DiskWork

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""Isolation levels, as Fetch and ListOffsets carry them (KIP-98)."""
READ_TO_END: Final = -1
"""The isolation level of followers, which also read uncommitted records (FetchIsolation.LOG_END)."""
NO_OFFSET: Final = -1


class LogOffsetSnapshot:
    """The offsets of a partition at one moment, for one answer. Source: Kafka's class of this name."""

    __slots__ = ("end", "high_watermark", "last_stable_offset", "log_start_offset")

    def __init__(self) -> None:
        self.log_start_offset = NO_OFFSET
        self.high_watermark = NO_OFFSET
        self.last_stable_offset = NO_OFFSET
        self.end = NO_OFFSET
        """The offset up to which this reader may read: the high watermark or the last stable offset."""

    def clear_offsets(self) -> None:
        """Sets all offsets to NO_OFFSET."""
        self.log_start_offset = self.high_watermark = self.last_stable_offset = self.end = NO_OFFSET


class Replica:
    """One partition's log, with the offsets that bound reads."""

    __slots__ = ("log", "name", "topic_id")

    def __init__(self, name: TopicPartition, topic_id: Uuid, log: Log) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record."""
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is committed or aborted."""
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
    def size_bytes(self) -> int:
        """The size of the log's batches."""
        return self.log.size_bytes

    @property
    def log_dir(self) -> str:
        """The directory of log.dirs that has the replica."""
        return self.log.log_dir

    @property
    def config(self) -> LogConfig:
        """The topic's options."""
        return self.log.config

    @property
    def must_flush(self) -> bool:
        """True if appended records must be flushed before they are acknowledged."""
        return self.log.must_flush

    @property
    def producers(self) -> Collection[ProducerEntry]:
        """The idempotent producers whose last batches the log remembers."""
        return self.log.producer_state.producers.values()

    def snapshot(self, isolation_level: int) -> LogOffsetSnapshot:
        """Returns the offsets as of now, for a reader at this isolation level."""
        snapshot = LogOffsetSnapshot()
        self.update_snapshot(snapshot, isolation_level)
        return snapshot

    def update_snapshot(self, snapshot: LogOffsetSnapshot, isolation_level: int) -> None:
        """Sets the offsets of `snapshot` to those of now, for a reader at this isolation level."""
        log = self.log
        high_watermark, unstable = log.high_watermark, log.first_unstable_offset
        stable = high_watermark if unstable is None or unstable > high_watermark else unstable
        snapshot.log_start_offset = log.log_start_offset
        snapshot.high_watermark = high_watermark
        snapshot.last_stable_offset = stable
        if isolation_level == READ_UNCOMMITTED:
            snapshot.end = high_watermark
        else:
            snapshot.end = stable if isolation_level == READ_COMMITTED else log.log_end_offset

    def fetch_limit(self, isolation_level: int) -> int:
        """Returns the offset up to which a consumer may read."""
        return self.snapshot(isolation_level).end

    def ends_at(self, offset: int) -> bool:
        """True if nothing is committed from the offset on, and no transaction is open: the same as `snapshot` shows, at
        less cost."""
        log = self.log
        return offset == log.high_watermark and log.first_unstable_offset is None

    def read(self, snapshot: LogOffsetSnapshot, offset: int, max_bytes: int, at_least_one: bool) -> memoryview:
        """Returns the batches from the batch that contains `offset` up to the snapshot's end; the last may be cut off
        by `max_bytes`. With `at_least_one`, the first batch is whole, however large. Raises OFFSET_OUT_OF_RANGE,
        KAFKA_STORAGE_ERROR.
        """
        log = self.log
        if not snapshot.log_start_offset <= offset <= log.log_end_offset:
            raise log.out_of_range(offset)
        if offset >= snapshot.end:
            return EMPTY
        return log.view(offset, max_bytes, snapshot.end, min_one=at_least_one)

    def read_all(self, offset: int, max_bytes: int) -> ReadResult:
        """Returns whole batches up to the log's end, committed or not, for a coordinator that loads its state."""
        return self.log.read(offset, max_bytes)

    def cold_read(self, offset: int, max_bytes: int) -> ColdRead | None:
        """Returns the part of a read that would have to wait for the disk; None if no such part is known."""
        return self.log.cold_read(offset, max_bytes)

    def aborted_in(self, offset: int, records: memoryview) -> list[AbortedTxn]:
        """Returns the aborted transactions whose records a read-committed consumer must leave out of `records`, which
        were read from the offset on."""
        log = self.log
        if not records or all(segment.txn_index.is_empty for segment in log.segments.since(offset)):
            return []
        return log.aborted_in(ReadResult([records], len(records), offset))

    def offset_for_timestamp(self, timestamp: int, looked: Looked) -> TimestampAndOffset | None:
        """Returns the first record with this timestamp or a later one; None if there is none. Raises Unseen for a batch
        that `looked` doesn't cover."""
        return self.log.offset_for_timestamp(timestamp, looked)

    def max_timestamp(self, looked: Looked) -> TimestampAndOffset | None:
        """Returns the record with the largest timestamp; None if no record has one. Raises Unseen."""
        return self.log.max_timestamp(looked)

    @property
    def last_leader_epoch(self) -> int:
        """The epoch of the last record, or of a leader without records yet; -1 if there was none."""
        return self.log.last_leader_epoch

    @property
    def first_leader_epoch(self) -> int:
        """The epoch of the first record; -1 if it is unknown."""
        epoch = self.log.epochs.epoch_for_offset(self.log.log_start_offset)
        return NO_EPOCH if epoch is None else epoch

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Returns the largest epoch up to the given epoch, and the offset after its last record; -1 for both if the log
        has no such epoch."""
        return self.log.epochs.end_offset_for(leader_epoch, self.log.log_end_offset)

    def segments_written(self, now_ms: int) -> list[tuple[int, int]]:
        """Returns the first offset of each segment and the time of its last write, in ms; then the high watermark with
        the current time, unless the last segment is empty."""
        log = self.log
        offsets = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms()) for segment in log.segments]
        if log.segments.active.size_bytes:
            offsets.append((self.high_watermark, now_ms))
        return offsets

    def forget_producers(self, now_ms: int) -> None:
        """Removes the producers that have been idle for producer.id.expiration.ms."""
        if self.log.is_being_truncated:
            return  # the truncation rebuilds the producers
        self.log.producer_state.remove_expired(now_ms)

    async def flushed(self, disk_work: DiskWork) -> None:
        """Returns once every appended record is on the device. Raises LogDirFailure, LogDirFull."""
        await disk_work.flushed(self.log)

    def start_verification(self, header: BatchHeader, *, supports_epoch_bump: bool, now_ms: int) -> Verification | None:
        """Returns the guard with which a transactional batch is appended after its coordinator has verified it; None if
        its transaction is open here already. Raises INVALID_PRODUCER_EPOCH (KIP-890)."""
        return self.log.producer_state.start_verification(
            header.producer_id,
            header.base_sequence,
            header.producer_epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """True if a transaction of this producer epoch is open here."""
        entry = self.log.producer_state.producers.get(producer_id)
        return entry is not None and entry.has_ongoing_transaction(epoch)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """True if a transaction of the producer is open here. Raises INVALID_PRODUCER_EPOCH if the producer was
        fenced.
        """
        entry = self.log.producer_state.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} is at epoch {entry.epoch}, not at {epoch}"
            )
        return entry is not None and entry.has_ongoing_transaction(epoch)

    def check_end_of_transaction(self, marker: memoryview, transaction_version: int) -> None:
        """Checks a marker without writing it. Raises the errors of `end_transaction` about the producer and its
        coordinator.
        """
        self.log.check_marker(marker, transaction_version)
