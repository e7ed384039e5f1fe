"""Builds record batches from records, from encoded records, or from a compressed payload."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)
from protocol.records.codecs import compress
from protocol.records.compression import Compression
from protocol.records.record import Record, encode_headers, encode_records, encode_values


def build(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """Returns a batch of `records` in order, with offsets from base_offset on; the records' own offsets are ignored.

    With `log_append_time_ms` all records have that timestamp, otherwise their own. `records` must not be empty.
    """
    assert records, "a batch has at least one record"
    count = len(records)
    base_timestamp = records[0].timestamp
    max_timestamp = max([record.timestamp for record in records])
    attributes = compression | transactional * TRANSACTIONAL | control * CONTROL
    if log_append_time_ms is not None:
        attributes, max_timestamp = attributes | TIMESTAMP_TYPE, log_append_time_ms
    place = base_offset, 0, partition_leader_epoch, MAGIC_V2, 0
    producer = producer_id, producer_epoch, base_sequence
    header = BatchHeader._make((*place, attributes, count - 1, base_timestamp, max_timestamp, *producer, count))
    return assemble(header, encode_records(records, range(count), base_timestamp), level)


def build_values(
    values: Sequence[bytes],
    *,
    key: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    compression: Compression,
) -> bytearray:
    """Returns a batch of records that differ only in their values, of which there is at least one."""
    count = len(values)
    header = BatchHeader(
        0, 0, NO_PARTITION_LEADER_EPOCH, MAGIC_V2, 0, compression | transactional * TRANSACTIONAL, count - 1,
        timestamp, timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    return assemble(header, encode_values(values, key, encode_headers(headers)))


def assemble(header: BatchHeader, records: bytes | bytearray, level: int | None = None) -> bytearray:
    """Returns a batch of encoded records, compressed with the header's codec, with its length and CRC."""
    if header.attributes & COMPRESSION_MASK:
        records = compress(header.compression, records, level)
    return pack(header, records)


def pack(header: BatchHeader, payload: bytes | bytearray) -> bytearray:
    """Returns a batch of compressed records, with its length and CRC."""
    batch = bytearray(HEADER_SIZE)
    batch += payload
    length = len(batch) - LOG_OVERHEAD
    HEADER.pack_into(batch, 0, header.base_offset, length, *header[2:])
    seal(batch, 0, length)
    return batch
