"""Records as the console shows them: masked, decoded, filtered, and with bounded size."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from protocol.record_text import COORDINATORS, METADATA_TOPIC, decoder
from protocol.records.batch import TimestampType
from protocol.records.record import Record
from protocol.types import TopicPartition

PREVIEW: Final = 1500
"""Characters of a key or value in a list."""

MAX_SHOWN: Final = 256 * 1024
"""Characters of a key or value on the page of a record."""

MAX_JSON: Final = 4 * 1024 * 1024
"""Bytes of the largest value that is read as JSON."""

AUTO: Final = "auto"


class Opened(NamedTuple):
    """A key or value: its bytes, or the JSON text of the document in them. Masks are applied."""

    data: bytes | None
    kind: str = ""
    """The format of the document; empty if `data` are the bytes themselves."""
    label: str = ""
    """The schema of the document."""
    fault: str = ""
    """Why the bytes can't be decoded as they were meant to be."""


class ShownRecord(NamedTuple):
    """A record of a partition, with its masks applied."""

    place: TopicPartition
    record: Record
    timestamp_type: TimestampType
    key: Opened
    value: Opened
    key_size: int
    value_size: int
    """The bytes of key and value, of which the others may have only the beginning; -1 for null."""


def beginning(record: ShownRecord, most: int) -> ShownRecord:
    """Returns a record with at most `most` bytes of its key and of its value."""
    if max(record.key_size, record.value_size, len(record.key.data or b""), len(record.value.data or b"")) <= most:
        return record
    whole, key, value = record.record, record.key, record.value
    return record._replace(
        record=whole._replace(key=whole.key and whole.key[:most], value=whole.value and whole.value[:most]),
        key=key._replace(data=key.data and key.data[:most]),
        value=value._replace(data=value.data and value.data[:most]),
    )


class DecodedData(NamedTuple):
    """A key or value as text."""

    text: str
    kind: str
    is_cut: bool
    """True if the text is only the beginning."""
    size: int
    """The bytes of the text; -1 if it is null."""
    note: str = ""
    """The schema, or why the bytes aren't decoded."""


Decode: TypeAlias = Callable[[bytes, int], DecodedData | None]
"""Decodes bytes into text of at most the given number of characters; returns None if they have another format."""


def cut(text: str, most: int, kind: str, size: int) -> DecodedData:
    """Returns a text, or its beginning if it is long."""
    return DecodedData(text[:most], kind, len(text) > most, size)


def as_text(data: bytes, most: int) -> DecodedData:
    """Decodes UTF-8; shows other bytes as replacement characters."""
    head = data[: most * 4]
    text = head.decode(errors="replace")
    return DecodedData(text[:most], "text", len(text) > most or len(head) < len(data), len(data))


def as_hex(data: bytes, most: int) -> DecodedData:
    """Shows bytes in hexadecimal, in groups of two bytes."""
    head = data[: most * 2 // 5]
    return DecodedData(head.hex(" ", -2), "hex", len(head) < len(data), len(data))


def as_base64(data: bytes, most: int) -> DecodedData:
    head = data[: most * 3 // 4]
    return DecodedData(b64encode(head).decode(), "base64", len(head) < len(data), len(data))


def as_json(data: bytes, most: int) -> DecodedData | None:
    """Decodes JSON, indented if it has room for that."""
    value = parse_json(data)
    if value is None and data.strip() != b"null":
        return None
    indent = 2 if most > PREVIEW else None
    return cut(json.dumps(value, ensure_ascii=False, indent=indent), most, "json", len(data))


def parse_json(data: bytes) -> object:
    """Returns the value of a JSON text; None if it is null, too large or no JSON."""
    if len(data) > MAX_JSON:
        return None
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def as_anything(data: bytes, most: int) -> DecodedData:
    """Decodes a JSON object or list, else text, else shows hexadecimal."""
    if data[:1] in (b"{", b"[") and len(data) <= MAX_JSON and (shown := as_json(data, most)) is not None:
        return shown
    try:
        data[: most * 4].decode()
    except UnicodeDecodeError as error:
        if error.start < min(len(data), most * 4) - 3:  # else a character was cut
            return as_hex(data, most)
    return as_hex(data, most) if _is_binary(data[: most * 4]) else as_text(data, most)


def _is_binary(data: bytes) -> bool:
    """True if bytes have control characters other than white space."""
    return any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in data)


DECODERS: Final[dict[str, Decode]] = {
    AUTO: as_anything,
    "text": as_text,
    "json": as_json,
    "hex": as_hex,
    "base64": as_base64,
}
"""The decoders by their names in URLs."""


def decode(opened: Opened, name: str, most: int) -> DecodedData:
    """Returns a key or value as text. Bytes that aren't of the named format are shown in hexadecimal."""
    data = opened.data
    if data is None:
        return DecodedData("null", "null", False, -1)
    if opened.kind:
        shown = (as_json(data, most) or as_text(data, most))._replace(kind=opened.kind)
    elif opened.fault or name not in DECODERS:
        shown = as_hex(data, most)._replace(kind="hex" if name == AUTO else f"not {name}")
    else:
        shown = DECODERS[name](data, most) or as_hex(data, most)._replace(kind=f"not {name}")
    return shown._replace(note=opened.fault or opened.label)


def row_of(shown: ShownRecord, name: str) -> dict[str, object]:
    """Returns a record as a row of a list; `name` is the way to show its value."""
    place, record = shown.place, shown.record
    return {
        "url": f"/topics/{place.topic}/records/{place.partition}/{record.offset}",
        "partition": place.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": [(name, decode(Opened(value), "text", 200).text) for name, value in record.headers[:8]],
        "more_headers": max(len(record.headers) - 8, 0),
        "key_size": shown.key_size,
        "value_size": shown.value_size,
        "internal": internal_text(place.topic, record) if is_internal(place.topic) else None,
        "key": decode(shown.key, AUTO, 200),
        "value": decode(shown.value, name, PREVIEW),
    }


def is_internal(topic: str) -> bool:
    """True if the records of a topic are decoded with the names of their fields, as `odradek log` does."""
    return topic in COORDINATORS or topic == METADATA_TOPIC


def internal_text(topic: str, record: Record) -> str:
    """Returns a record of an internal topic with the names of its fields."""
    return decoder(topic)(record)
