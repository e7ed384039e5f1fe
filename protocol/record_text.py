"""Records as text for people: records of internal topics with the names of their fields, others as text or bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol import coordinator_records, metadata_records
from protocol.errors import KafkaError, ProtocolError
from protocol.records.record import Record
from protocol.schema import fields_of
from protocol.types import uuid_to_text

MAX_TEXT: Final = 200
"""Maximum number of characters of a key or value that are shown."""

METADATA_TOPIC: Final = "__cluster_metadata"

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
