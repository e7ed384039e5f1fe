"""Record batches that no correct client sends, and message sets that only old clients send."""

from __future__ import annotations

from protocol.records.batch import HEADER, LOG_OVERHEAD, read_header, seal
from protocol.records.building import build
from protocol.records.legacy import down_convert
from tests.interop.conformance.records import batch, records

RECORDS_COUNT_AT = 57


def damaged(data: bytes) -> bytes:
    """Returns the batch with its last byte inverted, and its CRC unchanged."""
    return data[:-1] + bytes([data[-1] ^ 0xFF])


def header_changed(data: bytes, **fields: int) -> bytes:
    """Returns the batch with other header fields, and a matching CRC."""
    buffer = bytearray(data)
    header = read_header(buffer)
    HEADER.pack_into(buffer, 0, *header._replace(**fields))
    seal(buffer, 0, header.batch_length)
    return bytes(buffer)


def empty_batch() -> bytes:
    """Returns a header without records, as compaction may leave it."""
    return with_records(b"", records_count=0, last_offset_delta=0)


def with_records(data: bytes, **fields: int) -> bytes:
    """Returns a batch whose records are these bytes."""
    header = read_header(bytes(build(records())))._replace(batch_length=61 - LOG_OVERHEAD + len(data), **fields)
    buffer = bytearray(HEADER.pack(*header)) + data
    seal(buffer, 0, header.batch_length)
    return bytes(buffer)


def null_records_count() -> bytes:
    return with_records(b"\xff" * 40, records_count=2, last_offset_delta=1)


def message_set(magic: int, count: int = 1) -> bytes:
    """Returns messages of an old format."""
    return bytes(down_convert(memoryview(batch(count)), magic, first_offset=0))
