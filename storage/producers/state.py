"""The state of one partition's producers, which decides about their next batches and has their open transactions.

`check` validates a batch before the write, and changes nothing; `update` applies it after the write. The state is in
memory, and in `<offset>.snapshot` files so that opening a log need not read all of it. Kafka class ProducerStateManager
and the related parts of UnifiedLog, as of 4.3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL, TRANSACTIONAL, BatchHeader
from storage.disk import Disk
from storage.producers.entry import CachedBatch, CompletedTxn, EndMarker, Origin, ProducerEntry, Verification
from storage.producers.snapshot import SnapshotFiles


class ProducerBatch(NamedTuple):
    """A batch with a producer id, and its offset in the log. `marker` is the marker in a control batch."""

    header: BatchHeader
    base_offset: int
    marker: EndMarker | None = None


class ProducerState:
    """The producers of one partition.

    `end_offset` is the log end offset up to which batches are applied. The log sets it after each append.
    """

    __slots__ = (
        "_ongoing",
        "_producers",
        "_snapshot_offset",
        "_snapshots",
        "_unreplicated",
        "_verifications",
        "end_offset",
        "expiration_ms",
        "verification_enabled",
    )

    def __init__(self, directory: str, *, disk: Disk, expiration_ms: int, verification_enabled: bool = False) -> None:
        """Creates a state without producers. `expiration_ms` is `producer.id.expiration.ms`, after which an idle
        producer is removed; with `verification_enabled` a transaction's first write needs a guard (KIP-890)."""
        self.expiration_ms = expiration_ms
        self.verification_enabled = verification_enabled
        self.end_offset = 0
        self._snapshots = SnapshotFiles(directory, disk)
        self._producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # open transactions: first offset -> producer id, ordered by offset
        self._unreplicated: dict[int, int] = {}  # ended above the high watermark: first offset -> last offset
        self._verifications: dict[int, Verification] = {}
        self._snapshot_offset = 0

    @property
    def producers(self) -> Mapping[int, ProducerEntry]:
        """All producers by id, read-only."""
        return MappingProxyType(self._producers)

    @property
    def is_empty(self) -> bool:
        """True if a truncation would not change the state."""
        return not self._producers and not self._unreplicated

    # Appending

    def check(
        self, header: BatchHeader, origin: Origin, *, marker: EndMarker | None = None, guard: Verification | None = None
    ) -> CachedBatch | None:
        """Checks that a batch with a producer id may be appended; returns the original batch of a duplicate.

        Raises KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED. An unknown producer may begin at any sequence number.
        """
        producer_id = header.producer_id
        epoch, sequence, is_transactional = header.producer_epoch, header.base_sequence, header.is_transactional
        in_line = self.next_in_line(producer_id, epoch, sequence, is_transactional)
        if in_line is not None and not header.is_control:
            return None
        entry = self._producers.get(producer_id)
        if origin is Origin.CLIENT and entry is not None:
            duplicate = entry.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        if entry is None:
            entry = ProducerEntry(header.producer_id)
        self._check(entry, header, origin, marker, guard)
        return None

    def next_in_line(self, producer_id: int, epoch: int, sequence: int, is_transactional: bool) -> ProducerEntry | None:
        """Returns the producer if this is its next batch, which neither begins nor ends a transaction, and no other
        check is needed, as for most batches; otherwise None.
        """
        entry = self._producers.get(producer_id)
        if (
            entry is not None
            and entry.next_sequence == sequence
            and entry.epoch == epoch
            and entry.in_order
            and (entry.txn_first_offset >= 0) == is_transactional
            and not self._verifications
        ):
            return entry
        return None

    def check_all(self, batches: Iterable[ProducerBatch], origin: Origin) -> None:
        """Checks that several batches may be appended in order. Raises KafkaError as `check` does."""
        tried: dict[int, ProducerEntry] = {}
        for header, base_offset, marker in batches:
            producer_id = header.producer_id
            entry = tried.get(producer_id)
            if entry is None:
                remembered = self._producers.get(producer_id)
                entry = tried[producer_id] = ProducerEntry(producer_id) if remembered is None else remembered.copy()
            self._check(entry, header, origin, marker, None)
            if marker is not None:
                entry.end_transaction(header.producer_epoch, marker, base_offset)
            elif not header.is_control:
                entry.add_batch(header, base_offset, header.max_timestamp)

    def _check(
        self,
        entry: ProducerEntry,
        header: BatchHeader,
        origin: Origin,
        marker: EndMarker | None,
        guard: Verification | None,
    ) -> None:
        epoch = header.producer_epoch
        if origin is not Origin.REPLICATION and header.is_transactional and not entry.has_ongoing_transaction(epoch):
            self._check_transaction_start(entry, header, origin, guard)
        if not header.is_control:
            entry.check_data(header, origin, self._verifications.get(header.producer_id))
        elif marker is not None:
            entry.check_marker(epoch, marker, origin)

    def _check_transaction_start(
        self, entry: ProducerEntry, header: BatchHeader, origin: Origin, guard: Verification | None
    ) -> None:
        if header.producer_epoch < entry.epoch:
            raise _fenced(entry, header.producer_epoch)
        if not self.verification_enabled or header.is_control or origin is not Origin.CLIENT:
            return  # the group coordinator has verified its commits; its batch of many groups can't be rejected here
        if guard is None or self._verifications.get(header.producer_id) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has no open transaction with this partition",
            )

    def update(
        self, header: BatchHeader, base_offset: int, max_timestamp: int, marker: EndMarker | None = None
    ) -> CompletedTxn | None:
        """Applies a written batch; returns the transaction that it ended, or None.

        For a completed transaction the log then calls `last_stable_offset`, writes the transaction index, and calls
        `complete`. `max_timestamp` is the batch's timestamp after the append (LogAppendTime changes it).
        """
        attributes = header.attributes
        if attributes & CONTROL and marker is None:
            return None  # emptied by compaction: the transaction has no record left
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id)
        completed = None
        if marker is not None:
            completed = entry.end_transaction(header.producer_epoch, marker, base_offset)
        else:
            entry.add_batch(header, base_offset, max_timestamp)
        if attributes & TRANSACTIONAL:
            if entry.txn_first_offset == base_offset:
                self._ongoing[base_offset] = producer_id
            self._end_verification(header)
        return completed

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Returns the last stable offset once this transaction is complete, for the transaction index."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTxn) -> None:
        """Completes a transaction after the write of the transaction index. It stays unstable until its marker is
        replicated."""
        del self._ongoing[completed.first_offset]
        self._unreplicated[completed.first_offset] = completed.last_offset

    def replay(self, batches: Iterable[ProducerBatch]) -> None:
        """Applies batches that are already in the log, as when the log is opened."""
        for header, base_offset, marker in batches:
            completed = self.update(header, base_offset, header.max_timestamp, marker)
            if completed is not None:
                self.complete(completed)

    # Transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the transactions that are open or ended above the high watermark; None without any."""
        if self._unreplicated:
            first = min(self._unreplicated)
            return min(first, next(iter(self._ongoing))) if self._ongoing else first
        return next(iter(self._ongoing)) if self._ongoing else None

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Marks transactions as stable if their marker is below the high watermark."""
        if self._unreplicated:
            stable = [first for first, last in self._unreplicated.items() if last < high_watermark]
            for first in stable:
                del self._unreplicated[first]

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """True when a transaction of this producer and epoch has records here and no marker yet."""
        entry = self._producers.get(producer_id)
        return entry is not None and entry.has_ongoing_transaction(epoch)

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> Verification | None:
        """Returns the guard that a transactional write needs while the coordinator verifies it; None if the transaction
        is already open in this partition. Raises KafkaError(INVALID_PRODUCER_EPOCH)."""
        entry = self._producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _fenced(entry, epoch)
        if entry is not None and entry.has_ongoing_transaction(epoch):
            return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = Verification(now_ms, sequence, epoch, supports_epoch_bump)
            self._verifications[producer_id] = verification
        verification.lower(sequence, epoch)
        return verification

    def _end_verification(self, header: BatchHeader) -> None:
        """Ends the verification after the transaction's first batch or its marker was written, unless the marker has
        the same epoch as the waiting write: then it belongs to an older transaction.
        """
        verification = self._verifications.get(header.producer_id)
        if verification is None:
            return
        older = verification.supports_epoch_bump and header.is_control and header.producer_epoch == verification.epoch
        if not older:
            del self._verifications[header.producer_id]

    # Expiration and truncation

    def remove_expired(self, now_ms: int) -> None:
        """Removes producers that are idle for too long without an open transaction, and expired verifications."""
        self._producers = {
            producer_id: entry for producer_id, entry in self._producers.items() if not self._is_expired(entry, now_ms)
        }
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if now_ms - verification.created_ms < self.expiration_ms
        }

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= self.expiration_ms

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Loads the newest snapshot within the log's new offsets, if the log's end has changed.

        The log must then be replayed from `end_offset` on. Deletes snapshots out of range.
        """
        self._snapshots.delete_outside(log_start_offset, log_end_offset)
        if log_end_offset != self.end_offset:
            self._clear()
            self._load_latest_snapshot(log_start_offset, now_ms)
        else:
            self.on_log_start_offset_incremented(log_start_offset)

    def truncate_fully(self, offset: int) -> None:
        """Removes all producers, for a log that becomes empty and will start at this offset."""
        self._clear()
        self._snapshots.delete_outside(offset, offset)
        self._snapshot_offset = 0
        self.end_offset = offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Applies the log's new start offset. Producers of records below it stay until they expire."""
        self.on_high_watermark_updated(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)
        latest = self._snapshots.latest
        self._snapshot_offset = log_start_offset if latest is None else latest

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    # Snapshots

    @property
    def latest_snapshot_offset(self) -> int | None:
        """The offset of the newest snapshot file."""
        return self._snapshots.latest

    def entries(self) -> list[ProducerEntry]:
        """Returns a list of all producers. For any thread."""
        return list(self._producers.values())

    @property
    def has_deleted_snapshots(self) -> bool:
        """True if snapshots beyond the log's end were deleted. Until the folder is synced they may come back."""
        return self._snapshots.deleted_of_the_future

    def find_snapshots(self, names: Iterable[str] | None = None) -> None:
        """Finds the snapshot files. `names` are the files of the log's folder, if they are already listed."""
        self._snapshots.find(names)

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Deletes the snapshots without a segment, except the newest if it is beyond all segments (a clean stop)."""
        self._snapshots.delete_strays(segment_base_offsets)

    def set_snapshot_aside(self, offset: int) -> str | None:
        """Renames a deleted segment's snapshot to `.deleted`, and returns its path; None without a snapshot."""
        return self._snapshots.set_aside(offset)

    def take_snapshot(self, *, sync: bool = True) -> str | None:
        """Writes a snapshot at `end_offset` and returns its path; None if the newest snapshot is already there."""
        if self.end_offset <= self._snapshot_offset:
            return None
        path = self._snapshots.write(self.end_offset, self._producers.values(), sync=sync)
        self._snapshot_offset = self.end_offset
        return path

    def sync_snapshots(self, end_offset: int) -> None:
        """Flushes the snapshots up to `end_offset` to the device. For any thread. Raises OSError."""
        self._snapshots.sync(end_offset)

    def relocate(self, directory: str) -> None:
        """Sets the log's new directory, after a rename."""
        self._snapshots.directory = directory

    def _load_latest_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        loaded = self._snapshots.read_latest()
        offset = log_start_offset
        if loaded is not None:
            offset, entries = loaded
            self._take_over(entries, now_ms)
        self.end_offset = self._snapshot_offset = offset

    def _take_over(self, entries: Iterable[ProducerEntry], now_ms: int) -> None:
        self._producers = {entry.producer_id: entry for entry in entries if not self._is_expired(entry, now_ms)}
        ongoing = [entry for entry in self._producers.values() if entry.txn_first_offset >= 0]
        ongoing.sort(key=attrgetter("txn_first_offset"))
        self._ongoing = {entry.txn_first_offset: entry.producer_id for entry in ongoing}


def _fenced(entry: ProducerEntry, epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {entry.producer_id} is at epoch {entry.epoch}, not at {epoch}"
    )
