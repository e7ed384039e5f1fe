"""Formats batches and records as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from protocol.record_text import Decoder, message
from protocol.records.batch import DELETE_HORIZON, MAGIC_V2, BatchHeader
from protocol.records.compression import Compression
from protocol.records.control import ControlType, decode_key, decode_marker, decode_quorum_record
from protocol.records.message_set import read_messages
from protocol.records.record import Record, read_records


def batch_line(position: int, header: BatchHeader) -> str:
    """Returns a line about a batch."""
    words = [f"batch {header.base_offset} to {header.last_offset}, {_count(header.records_count, 'record')}"]
    words.append(f"{header.size_bytes} bytes at {position}")
    if header.magic < MAGIC_V2:
        words.append(f"magic {header.magic}")
    words.append(f"{Compression(header.attributes & 7).name.lower() if header.attributes & 7 <= 4 else 'codec?'}")
    words.append(f"leader epoch {header.partition_leader_epoch}")
    if header.producer_id >= 0:
        words.append(f"producer {header.producer_id} epoch {header.producer_epoch} sequence {header.base_sequence}")
    words += [name for name, flag in (("transactional", 0x10), ("control", 0x20)) if header.attributes & flag]
    if header.attributes & DELETE_HORIZON:
        words.append(f"delete horizon {moment(header.base_timestamp)}")
    words.append(f"{header.timestamp_type.name.lower().replace('_', ' ')} up to {moment(header.max_timestamp)}")
    return ", ".join(words)


def record_lines(view: memoryview, header: BatchHeader, show: Decoder) -> Iterator[str]:
    """Yields a line for each record of a batch."""
    if header.magic < MAGIC_V2:
        records = read_messages(view)
    else:
        records = read_records(view, 0, header)
    for record in records:
        shown = _control(record) if header.is_control and header.magic >= MAGIC_V2 else show(record)
        yield f"  {record.offset} {moment(record.timestamp)} {shown}"


def _control(record: Record) -> str:
    kind = decode_key(record.key)
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        marker = decode_marker(record)
        assert marker is not None
        return f"{marker.kind.name.lower()} of a transaction, coordinator epoch {marker.coordinator_epoch}"
    quorum_record = decode_quorum_record(record)
    return "control record of a later Kafka" if quorum_record is None else message(quorum_record)


def moment(timestamp_ms: int) -> str:
    """Returns a timestamp in UTC; in milliseconds if no calendar has it."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
