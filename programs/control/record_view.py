"""The records in the logs of this broker's partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.dispatch.broker import Broker
from broker.replica.partition import Partition
from broker.replica.replica import READ_COMMITTED, READ_UNCOMMITTED
from programs.control.http import RequestError
from programs.control.json_values import bytes_of
from protocol.errors import KafkaError
from protocol.records.batch import NO_SEQUENCE, BatchHeader, TimestampType, iter_batches
from protocol.records.record import Record, read_records

ISOLATION_LEVELS: Final = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
READ_BYTES: Final = 1 << 20
TIMESTAMP_TYPES: Final = {TimestampType.CREATE_TIME: "create", TimestampType.LOG_APPEND_TIME: "append"}


def partitions_here(broker: Broker, topic: str, index: int | None) -> list[Partition]:
    """Returns the topic's partitions on this broker, or only the one with the given number. Raises RequestError."""
    here = broker.replicas.topic(topic)
    if broker.image.topic(topic) is None:
        raise RequestError(404, f"there is no topic {topic}")
    if index is None:
        return [here[number] for number in sorted(here)]
    if index not in here:
        raise RequestError(404, f"this broker has no replica of {topic}-{index}; it has {sorted(here)}")
    return [here[index]]


def offsets_of(partition: Partition) -> dict[str, object]:
    """Returns the offsets of a partition for JSON."""
    snapshot = partition.snapshot(READ_UNCOMMITTED)
    return {
        "partition": partition.name.partition,
        "start_offset": snapshot.log_start_offset,
        "high_watermark": snapshot.high_watermark,
        "last_stable_offset": snapshot.last_stable_offset,
        "end_offset": partition.log_end_offset,
    }


def records_of(partition: Partition, isolation_level: int, offset: int | None, limit: int) -> list[dict[str, object]]:
    """Returns records from an offset on; None starts at the log's start. Raises RequestError."""
    try:
        return list(_records_of(partition, isolation_level, offset, limit))
    except KafkaError as error:
        raise RequestError(409, f"{partition.name}: {error}") from None


def _records_of(
    partition: Partition, isolation_level: int, offset: int | None, limit: int
) -> Iterator[dict[str, object]]:
    at = partition.log_start_offset if offset is None else max(offset, partition.log_start_offset)
    snapshot = partition.snapshot(isolation_level)
    while limit > 0 and at < snapshot.end:
        data = partition.read(snapshot, at, READ_BYTES, True)
        aborted = AbortedBatches(partition, at, data) if isolation_level == READ_COMMITTED else None
        before = at
        for position, header in iter_batches(data):
            if header.base_offset >= snapshot.end:
                return
            if aborted is None or not aborted.has(header):
                for record in read_records(data, position, header):
                    if record.offset >= at and limit > 0:
                        limit -= 1
                        yield record_content(partition, header, record)
            at = max(at, header.next_offset)
        if at == before:
            return


class AbortedBatches:
    """The aborted transactions of the read batches, each from its first offset to its marker."""

    def __init__(self, partition: Partition, offset: int, data: memoryview) -> None:
        self._transactions = [
            (entry.producer_id, entry.first_offset, entry.last_offset) for entry in partition.aborted_in(offset, data)
        ]

    def has(self, header: BatchHeader) -> bool:
        """True if a batch belongs to an aborted transaction; False for its marker."""
        return (
            header.is_transactional
            and not header.is_control
            and any(
                header.producer_id == producer_id and first <= header.base_offset <= last
                for producer_id, first, last in self._transactions
            )
        )


def record_content(partition: Partition, header: BatchHeader, record: Record) -> dict[str, object]:
    """Returns a record for JSON."""
    delta = record.offset - header.base_offset
    has_sequence = header.base_sequence != NO_SEQUENCE
    return {
        "partition": partition.name.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "timestamp_type": TIMESTAMP_TYPES[header.timestamp_type],
        "key": bytes_of(record.key),
        "value": bytes_of(record.value),
        "headers": [[name, bytes_of(value)] for name, value in record.headers],
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": header.sequence_after(delta) if has_sequence else NO_SEQUENCE,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
