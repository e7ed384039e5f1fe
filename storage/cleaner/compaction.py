"""Decides which batches and records a compacted log keeps. Kafka classes Cleaner (cleanInto) and
CleanedTransactionMetadata.

Each key keeps the record with the largest offset. A tombstone stays for `delete.retention.ms` after the first cleaning
that found it (KIP-534: that cleaning stores the end, the delete horizon, in the batch's base timestamp field). Records
of aborted transactions are removed. A transaction's marker stays until its records are gone, and then as long as a
tombstone. A batch that loses no record stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop

from protocol.records.batch import CONTROL, MAGIC_V2, TRANSACTIONAL, BatchHeader
from protocol.records.compression import Compression
from protocol.records.message_set import encode_message_set, iter_messages, read_messages
from protocol.records.record import LARGEST_RECORD, RawRecord, Record, iter_keys
from protocol.records.rewrite import with_records, without_records
from protocol.types import Buffer
from storage.cleaner.job import LastRecord
from storage.cleaner.offset_map import OffsetMap
from storage.markers import marker_in
from storage.producers.entry import EndMarker
from storage.segment.batches import check
from storage.segment.txn_index import AbortedTxn, TransactionIndex


class Stats:
    """The counts of one cleaning: records and bytes that it read and retained."""

    __slots__ = ("bytes_read", "bytes_written", "invalid_records", "map_bytes_read", "map_full", "records_kept")

    def __init__(self) -> None:
        self.map_bytes_read = 0
        self.map_full = 0.0
        """The used part of the offset map, from 0 to 1."""
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_kept = 0
        self.invalid_records = 0
        """Records without a key, which a compacted topic cannot keep."""


class Transactions:
    """Follows the transactions of a log from batch to batch, to find aborted records, and markers whose records are
    gone."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted` has the aborted transactions with records in the part of the log that is walked."""
        self._coming = [(transaction.first_offset, transaction) for transaction in set(aborted)]
        heapify(self._coming)
        self._aborted: dict[int, AbortedTxn] = {}
        self._with_records: set[int] = set()
        """Producers whose open transaction was aborted and still has a record."""
        self._committed: set[int] = set()
        self.index: TransactionIndex | None = None
        """The index of the cleaned segment, which gets the aborted transactions whose markers are still needed."""

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            transaction = heappop(self._coming)[1]
            self._aborted.setdefault(transaction.producer_id, transaction)

    def ends(self, header: BatchHeader, marker: EndMarker | None) -> bool:
        """Processes a control batch. Returns True if the batch is no longer needed. An empty batch is never needed; a
        control batch that is not a transaction marker is always needed."""
        self._begin_up_to(header.last_offset)
        if not header.records_count:
            return True
        if marker is None:
            return False
        if not marker.aborted:
            had_records = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_records
        transaction = self._aborted.pop(header.producer_id, None)
        if transaction is None or header.producer_id not in self._with_records:
            return True
        self._with_records.discard(header.producer_id)
        if self.index is not None:
            self.index.append(transaction)
        return False

    def is_aborted(self, header: BatchHeader) -> bool:
        """Processes a data batch; True if its transaction was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.attributes & TRANSACTIONAL:
            return False
        if header.producer_id in self._aborted:
            self._with_records.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False


class Filter:
    """Decides what remains of each batch of a log. Takes the batches in order."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: Transactions,
        producers: Mapping[int, LastRecord],
        stats: Stats,
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        largest_record: int = LARGEST_RECORD,
    ) -> None:
        """`end_offset` is the end of the cleanable part. The last batch before it stays, even if it is empty."""
        self.transactions = transactions
        self.retain_legacy_deletes = True
        """True if this segment keeps its v0 and v1 tombstones, which have no field for a delete horizon."""
        self._offsets = offsets
        self._producers = producers
        self._stats = stats
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._largest_record = largest_record

    def keep(self, view: memoryview, header: BatchHeader) -> Buffer | None:
        """Returns the batch for the cleaned log: unchanged, with fewer records, or empty. None if it is removed.

        Raises KafkaError: CORRUPT_MESSAGE, so that a damaged batch is never rewritten with a valid CRC, and
        INVALID_RECORD for a compressed record that is too large.
        """
        check(view, 0, header)
        if header.magic < MAGIC_V2:
            return self._keep_legacy(view, header)
        if header.attributes & CONTROL:
            return self._keep_control(view, header)
        if self.transactions.is_aborted(header):
            return without_records(header) if self._keeps_place(header) else None
        records = list(iter_keys(view, 0, header, largest=self._largest_record)) if header.records_count else []
        retained = [record for record in records if self._stays(record, header)]
        self._stats.records_kept += len(retained)
        if not retained:
            return without_records(header) if self._keeps_place(header) else None
        needs_horizon = header.delete_horizon_ms is None and any(record.value_is_null for record in retained)
        if len(retained) == len(records) and not needs_horizon:
            return view
        return with_records(header, retained, self._horizon_ms if needs_horizon else None)

    @property
    def _horizon_ms(self) -> int:
        return self._now_ms + self._delete_retention_ms

    def _keep_control(self, view: memoryview, header: BatchHeader) -> Buffer | None:
        marker = marker_in(view, 0, header) if header.records_count else None
        served = self.transactions.ends(header, marker)
        horizon_ms = header.delete_horizon_ms
        expired = served and horizon_ms is not None and horizon_ms <= self._now_ms
        if expired or not header.records_count:
            return without_records(header) if self._keeps_place(header) else None
        self._stats.records_kept += header.records_count
        if served and horizon_ms is None:
            return with_records(header, list(iter_keys(view, 0, header)), self._horizon_ms)
        return view

    def _keeps_place(self, header: BatchHeader) -> bool:
        """True if the batch stays without records, because it has its producer's last sequence number or epoch, or the
        last offset of the cleanable part."""
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is not None and last.data_offset >= 0:
            is_last = header.last_offset == last.data_offset
        else:
            is_last = last is not None and header.is_control and header.producer_epoch == last.epoch
        return is_last or header.next_offset == self._end_offset

    def _stays(self, record: RawRecord, header: BatchHeader) -> bool:
        if record.value_is_null:
            horizon_ms = header.delete_horizon_ms
            return self._is_latest(record.key, record.offset, horizon_ms is None or self._now_ms < horizon_ms)
        return self._is_latest(record.key, record.offset, True)

    def _is_latest(self, key: bytes | None, offset: int, if_latest: bool) -> bool:
        if offset > self._offsets.latest_offset:
            return True
        if key is None:
            self._stats.invalid_records += 1
            return False
        return if_latest and offset >= self._offsets.get(key)

    def _keep_legacy(self, view: memoryview, header: BatchHeader) -> Buffer | None:
        """Filters a v0 or v1 message, or a wrapper of several messages, from before Kafka 0.11."""
        self.transactions.is_aborted(header)
        wrapper = next(iter_messages(view))
        records = list(read_messages(view, largest=self._largest_record))
        retained = [record for record in records if self._stays_legacy(record)]
        self._stats.records_kept += len(retained)
        if not retained or len(retained) == len(records):
            return view if retained else None
        appended = wrapper.timestamp if wrapper.timestamp_type else None
        codec = Compression(wrapper.compression)
        return encode_message_set(retained, wrapper.magic, compression=codec, log_append_time_ms=appended)

    def _stays_legacy(self, record: Record) -> bool:
        is_tombstone = record.value is None
        return self._is_latest(record.key, record.offset, not is_tombstone or self.retain_legacy_deletes)
