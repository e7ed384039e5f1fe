"""Record batches that no honest client sends, and message sets that only old ones do."""

from __future__ import annotations

from protocol.records.batch import HEADER, LOG_OVERHEAD, read_header, seal
from protocol.records.building import build
from protocol.records.legacy import down_convert
from tests.interop.conformance.records import batch, records

RECORDS_COUNT_AT = 57


def damaged(data: bytes) -> bytes:
    """The last byte turned over; the CRC left as it was."""
    return data[:-1] + bytes([data[-1] ^ 0xFF])


def header_changed(data: bytes, **fields: int) -> bytes:
    """Header fields replaced, and a CRC that says it was meant."""
    buffer = bytearray(data)
    header = read_header(buffer)
    HEADER.pack_into(buffer, 0, *header._replace(**fields))
    seal(buffer, 0, header.batch_length)
    return bytes(buffer)


def empty_batch() -> bytes:
    """A header without records, as compaction may leave it."""
    return with_records(b"", records_count=0, last_offset_delta=0)


def with_records(data: bytes, **fields: int) -> bytes:
    """A batch with these bytes for records."""
    header = read_header(bytes(build(records())))._replace(batch_length=61 - LOG_OVERHEAD + len(data), **fields)
    buffer = bytearray(HEADER.pack(*header)) + data
    seal(buffer, 0, header.batch_length)
    return bytes(buffer)


def null_records_count() -> bytes:
    return with_records(b"\xff" * 40, records_count=2, last_offset_delta=1)


def message_set(magic: int, count: int = 1) -> bytes:
    """Messages of an old format."""
    return bytes(down_convert(memoryview(batch(count)), magic, first_offset=0))
