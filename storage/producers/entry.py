"""The state of one producer in a partition, and the rules for its next batch.

KIP-98 (idempotence, transactions), KIP-360 (epoch bumps), KIP-447, KIP-890 (verification, markers with a new epoch).
Kafka classes ProducerStateEntry, ProducerAppendInfo and VerificationStateEntry, as of 4.3.1.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
)
from protocol.tuples import new_tuple

RETAINED_BATCHES: Final = 5
"""Batches per producer among which a duplicate is detected: a producer has at most five requests in flight."""

NO_OFFSET: Final = -1
MAX_EPOCH: Final = 0x7FFF
TRANSACTION_VERSION_2: Final = 2
"""From this transaction.version on, every end-of-transaction marker carries a new producer epoch (KIP-890)."""


class Origin(Enum):
    """The source of an append, which decides the checks (Kafka class AppendOrigin)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    """The broker's own records: they have keys, may be control batches, and have no sequence numbers."""
    REPLICATION = "replication"
    """A leader's batches, to which the leader has assigned offsets and which it has checked."""


class CachedBatch(NamedTuple):
    """One of a producer's latest batches, for detecting duplicates and for snapshots."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of the first record."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


NO_BATCH: Final = CachedBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP)


class EndMarker(NamedTuple):
    """A transaction marker: the record in a control batch that ends a transaction."""

    aborted: bool
    coordinator_epoch: int
    timestamp: int
    transaction_version: int = 0


class CompletedTxn(NamedTuple):
    """A transaction whose marker, at `last_offset`, has been written."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Verification:
    """A transactional write that waits until the transaction coordinator verifies it (KIP-890).

    The object itself is the guard: the write succeeds only if the same object is still registered.
    """

    __slots__ = ("created_ms", "epoch", "lowest_sequence", "supports_epoch_bump")

    def __init__(self, created_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.created_ms = created_ms
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def lower(self, sequence: int, epoch: int) -> None:
        """Lowers the sequence to that of another waiting batch. The batch with the lowest sequence must be written
        first, or it would never be in order."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "in_order",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        """The first offset of the ongoing transaction in this partition, or -1."""
        self.batches: list[CachedBatch] = []
        self.next_sequence = 0
        self.in_order = True
        """True while the sequences of `batches` are consecutive. A batch that continues them is then no duplicate."""

    @property
    def last_batch(self) -> CachedBatch:
        """The newest batch of this epoch, or NO_BATCH."""
        return self.batches[-1] if self.batches else NO_BATCH

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record written in this epoch, or -1."""
        return self.last_batch.last_sequence

    def copy(self) -> ProducerEntry:
        """Returns a copy, for checking batches without changing the state."""
        twin = ProducerEntry(
            self.producer_id, self.epoch, self.coordinator_epoch, self.last_timestamp, self.txn_first_offset
        )
        twin.batches = self.batches.copy()
        twin.next_sequence = self.next_sequence
        twin.in_order = self.in_order
        return twin

    def has_ongoing_transaction(self, epoch: int) -> bool:
        """True when a transaction of this producer epoch has records here and no marker yet."""
        return self.txn_first_offset >= 0 and self.epoch == epoch

    def find_duplicate(self, header: BatchHeader) -> CachedBatch | None:
        """Returns the cached batch with the same epoch and sequence numbers, or None."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def add_batch(self, header: BatchHeader, base_offset: int, max_timestamp: int) -> None:
        """Adds a data batch that was written at this offset, with this timestamp (LogAppendTime changes it)."""
        epoch, sequence, delta = header.producer_epoch, header.base_sequence, header.last_offset_delta
        if epoch != self.epoch:
            self._enter_epoch(epoch)
        if sequence != self.next_sequence and self.batches:
            self.in_order = False
        last_sequence = (sequence + delta) & MAX_SEQUENCE if sequence != NO_SEQUENCE else NO_SEQUENCE
        self._cache(new_tuple(CachedBatch, (last_sequence, base_offset + delta, delta, max_timestamp)))
        self.last_timestamp = max_timestamp
        if self.txn_first_offset < 0 and header.attributes & TRANSACTIONAL:
            self.txn_first_offset = base_offset

    def add_plain(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        """Adds a batch with the next sequence number, in the current epoch, that begins no transaction."""
        self._cache(new_tuple(CachedBatch, (last_sequence, last_offset, offset_delta, timestamp)))
        self.last_timestamp = timestamp

    def restore(self, batch: CachedBatch) -> None:
        """Adds the last batch from a snapshot."""
        self._cache(batch)

    def end_transaction(self, epoch: int, marker: EndMarker, offset: int) -> CompletedTxn | None:
        """Ends the transaction by a marker that was written at this offset, and returns it. None if no transaction was
        open in this partition."""
        first_offset = self.txn_first_offset
        if epoch != self.epoch:
            self._enter_epoch(epoch)
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = marker.timestamp
        self.txn_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        return CompletedTxn(self.producer_id, first_offset, offset, marker.aborted)

    def _enter_epoch(self, epoch: int) -> None:
        self.batches.clear()
        self.next_sequence = 0
        self.in_order = True
        self.epoch = epoch

    def _cache(self, batch: CachedBatch) -> None:
        batches = self.batches
        if len(batches) == RETAINED_BATCHES:
            del batches[0]
        batches.append(batch)
        self.next_sequence = (batch.last_sequence + 1) & MAX_SEQUENCE

    def check_data(self, header: BatchHeader, origin: Origin, verification: Verification | None) -> None:
        """Raises KafkaError if this data batch may not be appended."""
        if header.producer_epoch < self.epoch and origin is not Origin.REPLICATION:
            raise self._stale_epoch(header.producer_epoch)
        if origin is Origin.CLIENT:
            self._check_sequence(header.producer_epoch, header.base_sequence, verification)
        if self.txn_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {self.producer_id} has an open transaction since offset {self.txn_first_offset}, "
                "but this batch is not transactional",
            )

    def check_marker(self, epoch: int, marker: EndMarker, origin: Origin) -> None:
        """Raises KafkaError if this end-of-transaction marker may not be appended."""
        if origin is Origin.REPLICATION:
            return
        if marker.transaction_version >= TRANSACTION_VERSION_2:
            repeated = epoch == self.epoch and (self.txn_first_offset < 0 or epoch == MAX_EPOCH)
            if epoch <= self.epoch and not repeated:
                raise self._stale_epoch(epoch)
        elif epoch < self.epoch:
            raise self._stale_epoch(epoch)
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the marker for producer {self.producer_id} has coordinator epoch {marker.coordinator_epoch}, "
                f"the current one is {self.coordinator_epoch}",
            )

    def _check_sequence(self, epoch: int, sequence: int, verification: Verification | None) -> None:
        if verification is not None:
            self._check_verified_sequence(sequence, verification)
        if self.epoch == NO_PRODUCER_EPOCH:
            return  # unknown producer, or expired with its records (retention, DeleteRecords): any sequence is allowed
        expected = self.next_sequence if epoch == self.epoch else 0
        if sequence != expected:
            raise self._out_of_order(sequence, f"of epoch {epoch}, but the next one must be {expected}")

    def _check_verified_sequence(self, sequence: int, verification: Verification) -> None:
        if verification.supports_epoch_bump and sequence != 0 and not self.batches:
            raise self._out_of_order(sequence, "but has no batch in this partition, so its first sequence must be 0")
        if sequence > verification.lowest_sequence:
            raise self._out_of_order(sequence, f"but {verification.lowest_sequence} is not written yet")

    def _stale_epoch(self, epoch: int) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {self.producer_id} is at epoch {self.epoch}, not at {epoch}"
        )

    def _out_of_order(self, sequence: int, why: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"producer {self.producer_id} sends sequence {sequence} {why}"
        )
