"""Parses lines, files and JSON into records, the input of `odradek produce`."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from cli.parser import did_you_mean
from commands.errors import misuse

CHUNK_BYTES: Final = 256 * 1024
"""Largest size of one read; a pipe or a terminal may return less."""

ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0", "\\\\": "\\"}


class InputRecord(NamedTuple):
    """A record to send. The producer chooses a partition or timestamp that is None."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class InputValues(NamedTuple):
    """Records to send that differ only in their values, as lines without keys do. They go to one partition."""

    values: Sequence[bytes]
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


class LineLayout(NamedTuple):
    """The parts of a line that become a record."""

    key_separator: bytes | None = None
    """The separator between key and value; None if lines have no keys."""
    key: bytes | None = None
    """The key of a record whose line has none."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    empty_is_null: bool = False
    """True if an empty value becomes a tombstone, and an empty key a null key."""

    def record(self, line: bytes) -> InputRecord:
        """Returns the record of a line. Raises CommandError if the key is missing."""
        key, value = self.key, line
        if self.key_separator is not None:
            before, separator, value = line.partition(self.key_separator)
            if not separator:
                expected = self.key_separator.decode(errors="replace")
                raise misuse(f"{line[:60].decode(errors='replace')!r} has no key: {expected!r} is not in it")
            key = before
        if self.empty_is_null:
            return InputRecord(key or None, value or None, self.headers)
        return InputRecord(key, value, self.headers)


def unescape(text: str) -> bytes:
    """Returns a separator with its escapes replaced: \\t by a tab, and so on."""
    for escape, character in ESCAPES.items():
        text = text.replace(escape, character)
    return text.encode()


def chunks(file: BinaryIO, separator: bytes) -> Iterator[list[bytes]]:
    """Yields the parts between separators, in lists of the parts that each read completes."""
    rest = b""
    read = getattr(file, "read1", file.read)
    while piece := read(CHUNK_BYTES):
        *whole, rest = (rest + piece).split(separator)
        if whole:
            yield whole
    if rest:
        yield [rest]


CONTENT_KEYS: Final = ("key", "payload", "key_base64", "payload_base64")
JSON_KEYS: Final = (*CONTENT_KEYS, "headers", "partition", "ts")
IGNORED_KEYS: Final = frozenset({"topic", "offset", "tstype", "broker", "delivery_count"})
"""Further keys that kcat's -J and `odradek consume -o json` print."""


def from_json(line: bytes) -> InputRecord:
    """Returns the record of a line of JSON with the names of kcat's -J, and of `odradek consume -o json`: key, payload,
    headers (names and values in turn), partition, ts; key_base64 and payload_base64 for bytes that are not text. Raises
    CommandError, also for an unknown key, which may be a misspelt one."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise misuse(f"{line[:60].decode(errors='replace')!r} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise misuse(f"{line[:60].decode(errors='replace')!r} is not a JSON object with key and payload")
    for name in fields.keys() - {*JSON_KEYS, *IGNORED_KEYS}:
        raise misuse(f"unknown key {name[:60]!r}{did_you_mean(name, JSON_KEYS)} (the keys are {', '.join(JSON_KEYS)})")
    if not fields.keys() & {*CONTENT_KEYS}:
        raise misuse(f"the object has none of the keys {', '.join(CONTENT_KEYS)}")
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
            raise misuse(f"{name}_base64 {encoded[:40]!r} is not base64") from None
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()


def _integer(fields: dict[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise misuse(f"{name} {value!r} is not a whole number")


def _headers(listed: object) -> Iterable[tuple[str, bytes | None]]:
    if not isinstance(listed, list) or len(listed) % 2:
        raise misuse(f'headers {listed!r}: expected names and values in turn, such as ["name", "value"]')
    for name, value in zip(listed[::2], listed[1::2], strict=True):
        if not isinstance(name, str):
            raise misuse(f"headers: the name {name!r} is not text")
        yield name, None if value is None else str(value).encode()
