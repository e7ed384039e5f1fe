"""One partition's log: its segments, and the state of its producers, leader epochs and transactions.

The broker's event loop appends and reads; `flush` may run in a worker thread at the same time. Kafka classes UnifiedLog
and LocalLog.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL, BatchHeader, read_header
from protocol.types import TopicPartition, Uuid
from storage import checkpoint
from storage.appending.append import Prepared, Settled, prepare
from storage.appending.appended import Appended as Appended
from storage.checkpoint import CorruptCheckpoint
from storage.cold import ColdRead, cold_read
from storage.config import LogConfig
from storage.disk import Disk
from storage.failure import Report, failing, failure, tell, unheard
from storage.local_log import LocalLog
from storage.markers import marker_in, producing, take_over
from storage.plain_append import append_plain
from storage.producers.entry import CachedBatch, Origin, Verification
from storage.producers.state import ProducerBatch, ProducerState
from storage.read import ReadResult, aborted_transactions, read, upper_bound_offset
from storage.recovering.recovery import BeforeCut, load
from storage.segment.offsets_for_time import Looked, Search, TimestampAndOffset, max_timestamp, offset_for_timestamp
from storage.segment.rolling import should_roll
from storage.segment.txn_index import AbortedTxn

CLIENT: Final = Origin.CLIENT
REPLICATION: Final = Origin.REPLICATION
"""Members of Origin as constants, because Python 3.11 takes 0.14 µs to look up a member of an enum."""

PRODUCER_EXPIRATION_MS: Final = 24 * 60 * 60 * 1000
"""Default of producer.id.expiration.ms."""


logger = logging.getLogger(__name__)


class Log(LocalLog):
    """The log of a partition. `Log.open` creates or opens it; methods raise LogDirFailure when the disk fails."""

    __slots__ = ()

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        disk: Disk,
        now_ms: int,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        clean: bool = True,
        topic_id: Uuid | None = None,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        verification_enabled: bool = False,
        report: Report = unheard,
        before_cut: BeforeCut | None = None,
    ) -> Log:
        """Opens the log in a folder, and creates the folder if needed. Unless `clean`, first checks the log from the
        recovery point on; `recovered` then reports what was cut. The high watermark is limited to the log's end. Raises
        LogDirFailure, LogDirFull, and the errors of `before_cut`.
        """
        with failing(os.path.dirname(directory), f"opening {topic_partition}", may_be_full=True, report=report):
            disk.mkdir(directory, parents=True)
            producer_state = ProducerState(
                directory, disk=disk, expiration_ms=producer_expiration_ms, verification_enabled=verification_enabled
            )
            loaded = load(
                directory,
                config,
                producer_state,
                disk=disk,
                now_ms=now_ms,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                clean=clean,
                before_cut=before_cut,
            )
            log = cls(directory, topic_partition, config, loaded, disk=disk, now_ms=now_ms, report=report)
            log.update_high_watermark(max(log.log_start_offset, min(high_watermark, log.log_end_offset)))
            if not loaded.is_new:
                log._load_topic_id()
        if topic_id is not None:
            log.assign_topic_id(topic_id)
        return log

    def _load_topic_id(self) -> None:
        try:
            self.topic_id = checkpoint.read_partition_metadata(self._disk, self.directory)
        except CorruptCheckpoint as error:
            logger.warning("topic id discarded: %s", error)

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Writes the topic id to the log's folder. Raises KafkaError(INCONSISTENT_TOPIC_ID)."""
        if self.topic_id not in (None, topic_id):
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{self.directory} belongs to another topic of this name")
        if self.topic_id is None:
            with self.failing("writing the topic id of", may_be_full=True):
                checkpoint.write_partition_metadata(self._disk, self.directory, topic_id, sync=False)
            self.topic_id = topic_id

    # Appending

    def append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = CLIENT,
        guard: Verification | None = None,
        transaction_version: int = 0,
        settled: Settled | None = None,
    ) -> Appended:
        """Appends batches (or messages of v0 and v1), and writes their offsets into `records` in place.

        Returns base offset -1 if `records` has no whole batch. `settled` is the result of `settle` after TooLong.
        Writes nothing if it raises KafkaError, InvalidRecords, LogDirFailure, LogDirFull or TooLong.
        """
        if guard is None and settled is None and self._may_be_plain(origin):
            appended = append_plain(self, records, leader_epoch, now_ms, origin is CLIENT, origin is REPLICATION)
            if appended is not None:
                return appended
        prepared = prepare(
            records,
            self.rules,
            origin,
            next_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            settled=settled,
        )
        batches = prepared.batches
        if not batches:
            return Appended(-1, -1, -1, self.log_start_offset, False)
        first, last = batches[0], batches[-1]
        plain = len(batches) == 1 and not first.attributes & CONTROL  # most appends: the short path
        producers: Sequence[ProducerBatch] = () if plain else producing(prepared, transaction_version)
        if not plain:
            duplicate = self._check_producers(producers, origin, guard)
        elif first.producer_id >= 0:
            duplicate = self.producer_state.check(first, origin, guard=guard)
        else:
            duplicate = None
        if duplicate is not None:
            return self._repeated(duplicate)
        last_offset = last.base_offset + last.last_offset_delta
        self._write(prepared, first, last_offset, now_ms)
        if first.partition_leader_epoch != self.last_leader_epoch or not plain:
            self._assign_epochs(batches)
        self.log_end_offset = last_offset + 1
        if not plain:
            with self.failing("writing the transaction index of"):
                take_over(producers, self.producer_state, self.segments.active)
        elif first.producer_id >= 0:
            self.producer_state.update(first, first.base_offset, first.max_timestamp)
        self.producer_state.end_offset = last_offset + 1
        log_append_time_ms = now_ms if self.rules.log_append_time and origin is not REPLICATION else -1
        return Appended(first.base_offset, last_offset, log_append_time_ms, self.log_start_offset, False)

    def _may_be_plain(self, origin: Origin) -> bool:
        """True if `append_plain` may append a batch of this origin. A client's records in a compacted topic need a
        check for keys. A leader's batch needs no check, because the leader has applied the topic's rules.
        """
        if origin is CLIENT:
            return self.rules.plain
        return origin is REPLICATION or (self.rules.stored_as_sent and origin is Origin.COORDINATOR)

    def _repeated(self, batch: CachedBatch) -> Appended:
        """Returns the result for a duplicate batch. As in Kafka, log_append_time_ms is the first batch's timestamp,
        even if the producer set it."""
        return Appended(batch.first_offset, batch.last_offset, batch.timestamp, self.log_start_offset, True)

    def _check_producers(
        self, producers: Sequence[ProducerBatch], origin: Origin, guard: Verification | None
    ) -> CachedBatch | None:
        if len(producers) == 1:
            header, _, marker = producers[0]
            return self.producer_state.check(header, origin, marker=marker, guard=guard)
        self.producer_state.check_all(producers, origin)
        return None

    def check_marker(self, batch: memoryview, transaction_version: int) -> None:
        """Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED if the marker may not be appended."""
        header = read_header(batch)
        marker = marker_in(batch, 0, header, transaction_version)
        self.producer_state.check(header, Origin.COORDINATOR, marker=marker)

    def _write(self, prepared: Prepared, first: BatchHeader, last_offset: int, now_ms: int) -> None:
        """Writes the batches to the active segment, or to a new segment."""
        active = self.segments.active
        size = prepared.size_bytes
        try:
            if should_roll(active, size, prepared.max_timestamp, last_offset, self._config, now_ms):
                active = self.roll(now_ms, first.base_offset)
            active.append(prepared.buffers, prepared.batches, size)
        except OSError as error:
            raise self.append_failed(active, error) from error

    def _assign_epochs(self, batches: Sequence[BatchHeader]) -> None:
        for batch in batches:
            self.assign_leader_epoch(batch.partition_leader_epoch, batch.base_offset)

    # Reading

    def read(self, offset: int, max_bytes: int, *, max_offset: int | None = None, min_one: bool = True) -> ReadResult:
        """Reads batches from `offset` up to `max_offset` (the high watermark or last stable offset).

        Returns at most max_bytes, but with `min_one` always the whole first batch. Reads from a single segment. Raises
        KafkaError(OFFSET_OUT_OF_RANGE).
        """
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise self.out_of_range(offset)
        limit = end if max_offset is None or max_offset > end else max_offset
        if offset >= limit:
            return ReadResult([], 0, offset)
        view = self.view(offset, max_bytes, limit, min_one=min_one)
        size = len(view)
        return ReadResult([view] if size else [], size, offset)

    def view(self, offset: int, max_bytes: int, limit: int, *, min_one: bool) -> memoryview:
        """Reads batches from an offset that is in the log and below the limit."""
        try:
            return read(self.segments, offset, limit, self.log_end_offset, max_bytes, min_one=min_one)
        except OSError as error:
            raise failure(self.log_dir, f"reading {self.topic_partition}", error, self.report) from error
        except KafkaError as damage:
            tell("batch is damaged", self.segments.containing(offset).path, offset=offset, reason=damage.message)
            raise

    def cold_read(self, offset: int, max_bytes: int) -> ColdRead | None:
        """Returns the read if it would wait for the device; None if not, or if unknown. The newest records are not
        checked: nearly all consumers read them, and they are in memory."""
        if self.segments.active.is_recent(offset):
            return None
        try:
            return cold_read(self, offset, max_bytes, self._disk)
        except OSError as error:
            raise failure(self.log_dir, f"looking for {self.topic_partition} in memory", error, self.report) from error

    def out_of_range(self, offset: int) -> KafkaError:
        """Returns the error for an offset outside the log."""
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{self.topic_partition} has offsets {self.log_start_offset} to {self.log_end_offset}, not {offset}",
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTxn]:
        """Returns the aborted transactions with records in [from, to), for a read-committed fetch."""
        with self.failing("reading the transaction index of"):
            return aborted_transactions(self.segments, from_offset, to_offset)

    def aborted_in(self, result: ReadResult) -> list[AbortedTxn]:
        """Returns the aborted transactions that a read-committed consumer needs to filter the result."""
        if not result.size_bytes:
            return []
        with self.failing("reading the transaction index of"):
            to_offset = upper_bound_offset(self.segments, result, self.log_end_offset)
            return aborted_transactions(self.segments, result.start_offset, to_offset)

    def offset_for_timestamp(self, timestamp: int, looked: Looked) -> TimestampAndOffset | None:
        """Returns the log's first record with this timestamp or a later timestamp, or None. Raises Unseen for a batch
        that is not in `looked`."""
        with self.failing("looking up a timestamp in"):
            return offset_for_timestamp(self.segments, timestamp, self._search(looked))

    def max_timestamp(self, looked: Looked) -> TimestampAndOffset | None:
        """Returns the first record with the largest timestamp; None if no record has a timestamp. Raises Unseen."""
        with self.failing("looking up the largest timestamp in"):
            return max_timestamp(self.segments, self._search(looked))

    def _search(self, looked: Looked) -> Search:
        return Search(self.log_start_offset, self.config.max_decompressed_message_bytes, looked)

    # Watermarks

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset that a read-committed consumer may not see yet; None if no transaction is undecided."""
        first = self.producer_state.first_unstable_offset
        return None if first is None else max(first, self.log_start_offset)

    def update_high_watermark(self, offset: int) -> None:
        """Sets the high watermark. All in-sync replicas have the records below it, retention may delete them, and
        transactions that ended below it are stable."""
        self.high_watermark = offset
        self.producer_state.on_high_watermark_updated(offset)
