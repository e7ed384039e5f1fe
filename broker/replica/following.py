"""A replica takes over its leader's batches as they are, and its watermarks.

Source: Kafka's ReplicaFetcherThread.processPartitionData and Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_be

from broker.replica.partition import Partition
from broker.replica.roles import Leading
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import HEADER_SIZE, read_header
from storage.producers.entry import Origin

OFFSET_BYTES: Final = 8
"""A batch begins with its offset."""


class BeginsInBatch(KafkaError):
    """The leader's log begins within its first batch, as DeleteRecords leaves it, and so does what it answers. A log
    that is empty has to begin with that batch; so has one whose records are of before the leader's start, where
    nothing can tell any more that they are another's."""

    def __init__(self, partition: Partition, base_offset: int) -> None:
        message = f"{partition.name}: the leader's first batch begins at offset {base_offset}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.base_offset = base_offset


def append_as_follower(
    partition: Partition, records: memoryview, leader_epoch: int, leader_log_start: int, now_ms: int
) -> int:
    """Appends the batches that the leader of this epoch has at the log's end, and returns by how much that moved.
    A batch of a newer epoch is left out (KAFKA-18723), with all behind it; so is one that is cut short.

    Raises KafkaError, with nothing written: FENCED_LEADER_EPOCH where this replica does not follow in that epoch,
    CORRUPT_MESSAGE or INVALID_RECORD for damaged batches, UNKNOWN_SERVER_ERROR for offsets that go back, BeginsInBatch,
    and what a disk that fails raises.
    """
    check_follows(partition, leader_epoch)
    log = partition.log
    start, end = log.log_start_offset, log.log_end_offset
    if len(records) >= HEADER_SIZE and read_i64_be(bytes(records[:OFFSET_BYTES]), 0) < end:
        first = read_header(records)
        if first.base_offset < end <= first.last_offset and (start == end or first.base_offset < leader_log_start):
            raise BeginsInBatch(partition, first.base_offset)
    log.append(records, leader_epoch=leader_epoch, now_ms=now_ms, origin=Origin.REPLICATION)
    partition.traffic.replication_bytes_in += len(records)
    return log.log_end_offset - end


def take_watermarks(partition: Partition, high_watermark: int, log_start_offset: int) -> None:
    """Takes over up to where the leader says that all is committed, and where its log begins.

    As far as the log goes, and never back: a new leader that does not know yet what is committed would have a
    follower forget it (KIP-207). Segments before the log start offset go when retention runs.
    """
    log = partition.log
    committed = min(high_watermark, log.log_end_offset)
    has_advanced = committed > log.high_watermark
    if has_advanced:
        log.update_high_watermark(committed)
    has_begun_later = log.advance_log_start(min(log_start_offset, log.high_watermark))
    if has_advanced or has_begun_later:
        partition.wake_all()


def check_follows(partition: Partition, leader_epoch: int) -> None:
    """Raises FENCED_LEADER_EPOCH unless this replica follows in that epoch, and no thread is at its log."""
    role = partition.role
    if partition.gone or partition.truncation is not None or isinstance(role, Leading) or role.epoch != leader_epoch:
        raise partition.moved(ErrorCode.FENCED_LEADER_EPOCH)
