"""Records out of lines, files and JSON: what `odradek produce` reads."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

from commands.errors import misuse

CHUNK_BYTES: Final = 256 * 1024
"""Read at once, where so much is there; a pipe or a terminal gives what it has."""

ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}


class InputRecord(NamedTuple):
    """A record to be sent; a partition or timestamp of None is chosen by the sender."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class LineLayout(NamedTuple):
    """How a line is a record."""

    key_separator: bytes | None = None
    """Between key and value, where lines have keys."""
    key: bytes | None = None
    """The key of every line without one."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    empty_is_null: bool = False
    """An empty value is a tombstone, and an empty key is none."""

    def record(self, line: bytes) -> InputRecord:
        """Returns the record of a line. Raises CommandError where its key is missing."""
        key, value = self.key, line
        if self.key_separator is not None:
            before, separator, value = line.partition(self.key_separator)
            if not separator:
                expected = self.key_separator.decode(errors="replace")
                raise misuse(f"the line {line[:60].decode(errors='replace')!r} has no key: {expected!r} is not in it")
            key = before
        if self.empty_is_null:
            return InputRecord(key or None, value or None, self.headers)
        return InputRecord(key, value, self.headers)


def unescape(text: str) -> bytes:
    """Returns a separator as it was meant: \\t for a tab, and so on."""
    for escape, character in ESCAPES.items():
        text = text.replace(escape, character)
    return text.encode()


def chunks(file: BinaryIO, separator: bytes) -> Iterator[list[bytes]]:
    """Yields the parts between separators, as many together as there are at the moment."""
    rest = b""
    read = getattr(file, "read1", file.read)
    while piece := read(CHUNK_BYTES):
        *whole, rest = (rest + piece).split(separator)
        if whole:
            yield whole
    if rest:
        yield [rest]


def from_json(line: bytes) -> InputRecord:
    """Returns the record of a line of JSON with the names of kcat's -J, and of `odradek consume -o json`: key, payload,
    headers (names and values in turn), partition, ts; key_base64 and payload_base64 for other bytes than text.
    Raises CommandError."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise misuse(f"the line {line[:60].decode(errors='replace')!r} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise misuse(f"the line {line[:60].decode(errors='replace')!r} is no JSON object with key and payload")
    return InputRecord(
        key=_content(fields, "key"),
        value=_content(fields, "payload"),
        headers=tuple(_headers(fields.get("headers") or [])),
        partition=_integer(fields, "partition"),
        timestamp=_integer(fields, "ts"),
    )


def _content(fields: dict[str, object], name: str) -> bytes | None:
    encoded, value = fields.get(f"{name}_base64"), fields.get(name)
    if isinstance(encoded, str):
        try:
            return b64decode(encoded, validate=True)
        except ValueError:
            raise misuse(f"{name}_base64 {encoded[:40]!r} is no base64") from None
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise misuse(f"{name} {value!r} is no whole number")


def _headers(listed: object) -> Iterable[tuple[str, bytes | None]]:
    if not isinstance(listed, list) or len(listed) % 2:
        raise misuse(f'headers {listed!r}: names and values in turn are expected, such as ["name", "value"]')
    for name, value in zip(listed[::2], listed[1::2], strict=True):
        if not isinstance(name, str):
            raise misuse(f"headers: the name {name!r} is no text")
        yield name, None if value is None else str(value).encode()
