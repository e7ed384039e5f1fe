"""Formats batches and records as lines of text; records of internal topics with the names of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from protocol import coordinator_records, metadata_records
from protocol.errors import KafkaError, ProtocolError
from protocol.records.batch import DELETE_HORIZON, MAGIC_V2, BatchHeader
from protocol.records.compression import Compression
from protocol.records.control import ControlType, decode_key, decode_marker, decode_quorum_record
from protocol.records.message_set import read_messages
from protocol.records.record import Record, read_records
from protocol.schema import fields_of
from protocol.types import uuid_to_text
from storage.names import METADATA_TOPIC

MAX_TEXT = 200
"""Maximum number of characters of a key or value that are shown."""

Decoder = Callable[[Record], str]

COORDINATORS = {
    "__consumer_offsets": coordinator_records.CONSUMER_OFFSETS,
    "__transaction_state": coordinator_records.TRANSACTION_STATE,
    "__share_group_state": coordinator_records.SHARE_GROUP_STATE,
}
NOT_RECORDS = (KafkaError, ProtocolError)


def decoder(topic: str | None) -> Decoder:
    """Returns the function that formats a topic's records: with field names if it is internal, else as text or
    bytes."""
    if topic == METADATA_TOPIC:
        return _metadata
    table = COORDINATORS.get(topic or "")
    return _plain if table is None else lambda record: _coordinator(table, record)


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


def _plain(record: Record) -> str:
    shown = f"key {text(record.key)} value {text(record.value)}"
    headers = ", ".join(f"{name}={text(value)}" for name, value in record.headers)
    return f"{shown} headers {headers}" if headers else shown


def _coordinator(table: dict[int, str], record: Record) -> str:
    try:
        decoded = coordinator_records.decode_record(table, record.key or b"", record.value)
    except NOT_RECORDS as error:
        return f"{_plain(record)} (not decoded: {error})"
    if decoded is None:
        return f"{_plain(record)} (a record type of a later Kafka)"
    return f"{message(decoded.key)} → {'deleted' if decoded.value is None else message(decoded.value)}"


def _metadata(record: Record) -> str:
    try:
        return message(metadata_records.decode_record(record.value or b""))
    except NOT_RECORDS as error:
        return f"{_plain(record)} (not decoded: {error})"


def message(value: object) -> str:
    """Returns a message with its fields by name."""
    fields = ", ".join(f"{field.name}={_field(getattr(value, field.name))}" for field in fields_of(type(value)))
    return f"{type(value).__name__}({fields})"


def _field(value: object) -> str:
    if hasattr(type(value), "__wire__"):
        return message(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_field, value))}]"
    if isinstance(value, bytes | bytearray | memoryview):
        return uuid_to_text(bytes(value)) if len(value) == 16 else text(bytes(value))
    return repr(value)


def text(data: bytes | None) -> str:
    """Returns bytes as text if they are printable, else in hexadecimal; truncates a long text."""
    if data is None:
        return "null"
    try:
        shown = data.decode()
        shown = repr(shown) if shown.isprintable() else f"0x{data.hex()}"
    except UnicodeDecodeError:
        shown = f"0x{data.hex()}"
    return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]}… ({len(data)} bytes)"


def moment(timestamp_ms: int) -> str:
    """Returns a timestamp in UTC; in milliseconds if no calendar has it."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
