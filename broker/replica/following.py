"""A replica appends its leader's batches unchanged, and follows its watermarks.

Source: Kafka's ReplicaFetcherThread.processPartitionData and Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_be

from broker.replica.partition import Partition
from coordinator.replication.roles import Leading
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import HEADER_SIZE, read_header
from storage.producers.entry import Origin

OFFSET_BYTES: Final = 8
"""A batch begins with its offset."""


class BeginsInBatch(KafkaError):
    """The leader's log starts inside its first batch (after DeleteRecords), and the fetched records start with that
    batch. An empty follower must start at the batch's base offset. So must a follower whose log ends inside the
    batch and has its first offset below the leader's log start, because it can't tell if its records are the
    leader's.
    """

    def __init__(self, partition: Partition, base_offset: int) -> None:
        message = f"{partition.name}: the leader's first batch begins at offset {base_offset}"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.base_offset = base_offset


def append_as_follower(
    partition: Partition, records: memoryview, leader_epoch: int, leader_log_start: int, now_ms: int
) -> int:
    """Appends the batches that the leader of this epoch has after the log's end, and returns the number of offsets
    added. Leaves out an incomplete batch, and a batch of a newer epoch with all batches after it (KAFKA-18723).

    Raises KafkaError, with nothing written: FENCED_LEADER_EPOCH if this replica doesn't follow in that epoch,
    CORRUPT_MESSAGE or INVALID_RECORD for damaged batches, UNKNOWN_SERVER_ERROR for offsets that go back, BeginsInBatch,
    and the errors of a failing disk.
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
    """Sets the high watermark and the log start offset to the leader's.

    The high watermark never exceeds the log's end, and never goes back: otherwise a new leader that doesn't know yet
    what is committed would make a follower forget it (KIP-207). Retention deletes segments below the log start offset.
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
    """Raises FENCED_LEADER_EPOCH unless this replica follows in that epoch, and no thread truncates its log."""
    role = partition.role
    if partition.gone or partition.truncation is not None or isinstance(role, Leading) or role.epoch != leader_epoch:
        raise partition.moved(ErrorCode.FENCED_LEADER_EPOCH)
