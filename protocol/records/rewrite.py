"""Rewrites batches with fewer records, for compaction.

Base offset, last offset, producer and epochs stay the same, so that the log's offsets and the state of the producers
outlive the records (org.apache.kafka.common.record.MemoryRecords.filterTo).
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.records.batch import COMPRESSION_MASK, DELETE_HORIZON, NO_TIMESTAMP, TIMESTAMP_TYPE, BatchHeader
from protocol.records.building import assemble
from protocol.records.record import RawRecord, encode_record


def with_records(
    header: BatchHeader, records: Sequence[RawRecord], delete_horizon_ms: int | None = None, level: int | None = None
) -> bytearray:
    """Returns the batch with only `records`, a part of its own records, compressed with its codec.

    `delete_horizon_ms` is the time from which its tombstones and markers may be removed (KIP-534). With None, the batch
    keeps its horizon.
    """
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    base_timestamp = records[0].timestamp if horizon is None else horizon
    encoded = bytearray()
    for record in records:
        encoded += encode_record(record.offset - header.base_offset, record.timestamp - base_timestamp, record.body)
    rewritten = header._replace(
        attributes=header.attributes if horizon is None else header.attributes | DELETE_HORIZON,
        base_timestamp=base_timestamp,
        max_timestamp=_max_timestamp(header, records),
        records_count=len(records),
    )
    return assemble(rewritten, encoded, level)


def without_records(header: BatchHeader) -> bytearray:
    """Returns the batch as a header without records, which keeps a producer's last sequence number, or the last offset
    before a gap."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0), b"")


def _max_timestamp(header: BatchHeader, records: Sequence[RawRecord]) -> int:
    if header.attributes & TIMESTAMP_TYPE:
        return header.max_timestamp
    return max(record.timestamp for record in records)
