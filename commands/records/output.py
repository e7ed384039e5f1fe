"""Prints records as JSON with kcat's names, or in the user's format."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cli.times import show_time
from commands.errors import misuse
from protocol.records.batch import TimestampType
from protocol.records.record import Record
from protocol.types import TopicPartition

FORMAT_HELP: Final = """\
Formats: %t topic, %p partition, %o offset, %k key, %v or %s value, %h headers, %T timestamp in ms, %D the same as a
date, %S and %K bytes of value and key (-1 for null), %d deliveries in a share group, %% a percent sign, \\n and \\t.
{hex}, {base64} and {json} after %k and %v encode them."""

DIRECTIVE: Final = re.compile(r"%(.)(?:\{(\w*)\})?|\\(.)", re.DOTALL)
ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class PrintedRecord(NamedTuple):
    """A record with its partition."""

    place: TopicPartition
    record: Record
    timestamp_type: TimestampType
    delivery_count: int = 0
    """The number of deliveries in a share group, counted from 1; 0 elsewhere."""


def as_row(printed: PrintedRecord) -> dict[str, object]:
    """Returns a record with the names of kcat's -J. Bytes that are not text are in key_base64 and payload_base64."""
    place, record, kind, deliveries = printed
    row: dict[str, object] = {"topic": place.topic, "partition": place.partition, "offset": record.offset}
    row |= {"tstype": "logappend" if kind is TimestampType.LOG_APPEND_TIME else "create", "ts": record.timestamp}
    if record.headers:
        row["headers"] = [text for name, value in record.headers for text in (name, _text_or_none(value))]
    row |= _content("key", record.key) | _content("payload", record.value)
    return row | {"delivery_count": deliveries} if deliveries else row


def _text_or_none(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _content(name: str, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def _plain(value: bytes | None) -> bytes:
    return b"" if value is None else value


def _json(value: bytes | None) -> bytes:
    return json.dumps(_text_or_none(value), ensure_ascii=False).encode()


ENCODINGS: Final[dict[str, Callable[[bytes | None], bytes]]] = {
    "": _plain,
    "text": _plain,
    "hex": lambda value: _plain(value).hex().encode(),
    "base64": lambda value: b64encode(_plain(value)),
    "json": _json,
}


def _headers(printed: PrintedRecord) -> bytes:
    return b",".join(name.encode() + b"=" + _plain(value) for name, value in printed.record.headers)


FIELDS: Final[dict[str, Callable[[PrintedRecord], object]]] = {
    "t": lambda printed: printed.place.topic,
    "p": lambda printed: printed.place.partition,
    "o": lambda printed: printed.record.offset,
    "T": lambda printed: printed.record.timestamp,
    "D": lambda printed: show_time(printed.record.timestamp) or "",
    "S": lambda printed: -1 if printed.record.value is None else len(printed.record.value),
    "K": lambda printed: -1 if printed.record.key is None else len(printed.record.key),
    "d": lambda printed: printed.delivery_count,
}
CONTENTS: Final[dict[str, Callable[[Record], bytes | None]]] = {
    "k": lambda record: record.key,
    "v": lambda record: record.value,
    "s": lambda record: record.value,
}

Part = Callable[[PrintedRecord], bytes]


def compile_format(text: str) -> Callable[[PrintedRecord], bytes]:
    """Returns the function that prints a record in a format. Raises CommandError for an unknown directive."""
    parts: list[Part] = []
    position = 0
    for match in DIRECTIVE.finditer(text):
        parts.append(_literal(text[position : match.start()].encode()))
        parts.append(_escape(match[3]) if match[3] else _directive(match[1], match[2]))
        position = match.end()
    parts.append(_literal(text[position:].encode()))
    return lambda printed: b"".join([part(printed) for part in parts])


def _literal(content: bytes) -> Part:
    return lambda _: content


def _escape(letter: str) -> Part:
    return _literal(ESCAPES.get(letter, f"\\{letter}".encode()))


def _directive(letter: str, encoding: str | None) -> Part:
    if letter == "%":
        return _literal(b"%")
    if letter == "h":
        return _headers
    if letter in FIELDS:
        field = FIELDS[letter]
        return lambda printed: str(field(printed)).encode()
    if letter in CONTENTS and (encoding or "") in ENCODINGS:
        content, encode = CONTENTS[letter], ENCODINGS[encoding or ""]
        return lambda printed: encode(content(printed.record))
    letters: Sequence[str] = sorted({*FIELDS, *CONTENTS, "h", "%"})
    raise misuse(
        f"--format %{letter}{f'{{{encoding}}}' if encoding else ''}: the directives are {' '.join(letters)}, the "
        f"encodings {', '.join(filter(None, ENCODINGS))}"
    )
