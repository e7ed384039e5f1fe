"""Encodes metadata records for the log: their versions, and their batches.

A record is the value of a log record without a key, framed as in `protocol.metadata_records`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from coordinator.engine.result import Result
from protocol.metadata_records import decode_record, encode_record, nodes, topics
from protocol.records import batch
from protocol.records.building import build
from protocol.records.control import QuorumRecord, decode_quorum_record
from protocol.records.record import Record, read_records
from protocol.types import Buffer

MetadataRecord: TypeAlias = object
"""An object of any class in `protocol.metadata_records`, which has a class for each of Kafka's record types."""

ClusterResult: TypeAlias = Result[MetadataRecord]
"""The result of a controller's decision."""

# The first metadata.version with each version of a record (org.apache.kafka.server.common.MetadataVersion).
WRITTEN: dict[type, tuple[tuple[int, int], ...]] = {
    topics.PartitionRecord: ((0, 0), (17, 1), (23, 2)),
    topics.PartitionChangeRecord: ((0, 0), (17, 1), (23, 2)),
    nodes.RegisterBrokerRecord: ((0, 1), (8, 2), (17, 3), (30, 4)),
}


def _registration_change_version(record: nodes.BrokerRegistrationChangeRecord) -> int:
    """Returns the oldest version that has all fields that the record uses."""
    if record.cordoned_log_dirs is not None:
        return 3
    return 2 if record.log_dirs else 1 if record.in_controlled_shutdown else 0


def version_of(record: MetadataRecord, metadata_version: int) -> int:
    """Returns the version in which the record is written at this metadata.version."""
    if isinstance(record, nodes.BrokerRegistrationChangeRecord):
        return _registration_change_version(record)
    steps = WRITTEN.get(type(record))
    if steps is None:
        return 0
    return steps[bisect_right(steps, (metadata_version, 0x7FFF)) - 1][1]


def log_record(record: MetadataRecord, metadata_version: int, now_ms: int) -> Record:
    """Returns the log record with this metadata record as its value."""
    return Record(timestamp=now_ms, value=encode_record(record, version_of(record, metadata_version)))


class MetadataBatch(NamedTuple):
    """A batch of the metadata log: records of the cluster or, if it is a control batch, of the quorum."""

    base_offset: int
    last_offset: int
    epoch: int
    size_bytes: int
    timestamp_ms: int
    records: Sequence[MetadataRecord] = ()
    quorum: Sequence[QuorumRecord] = ()

    @property
    def next_offset(self) -> int:
        """The offset of the next batch."""
        return self.last_offset + 1


def encode_batch(records: Sequence[MetadataRecord], metadata_version: int, now_ms: int) -> bytearray:
    """Returns one batch with all records, so that either all of them are in the log or none."""
    return build([log_record(record, metadata_version, now_ms) for record in records])


def decode_batches(data: Buffer) -> Iterator[MetadataBatch]:
    """Yields the batches of the metadata log. Raises ProtocolError and KafkaError."""
    for position, header in batch.iter_batches(data):
        records = read_records(data, position, header)
        yield MetadataBatch(
            header.base_offset,
            header.last_offset,
            header.partition_leader_epoch,
            header.size_bytes,
            header.max_timestamp,
            () if header.is_control else [decode_record(record.value or b"") for record in records],
            _quorum_records(records) if header.is_control else (),
        )


def _quorum_records(records: Iterable[Record]) -> list[QuorumRecord]:
    return [record for record in map(decode_quorum_record, records) if record is not None]
