"""Filters of records: on key, value and headers, and on a path in a JSON value. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from commands.errors import misuse
from console.records import parse_json
from protocol.records.record import Record

EXPRESSION: Final = re.compile(
    r"\s*\$?\.?(?P<path>[^=!<>~]+?)\s*(?:(?P<sign>!=|=|<|>|~)\s*(?P<value>.*?))?\s*", re.DOTALL
)
STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
PATH_HELP: Final = "a path such as order.lines[0].sku, alone or with = != < > ~ and a value"

MISSING: Final = object()
"""The value at a path that a document doesn't have."""


class JsonCondition(NamedTuple):
    """A condition on a document: the path exists, or the value there compares as wanted."""

    steps: tuple[str | int, ...]
    sign: str
    """The comparison; empty if the path must only exist."""
    wanted: str

    def __call__(self, document: object) -> bool:
        value = _at(document, self.steps)
        return value is not MISSING and (not self.sign or _compare(value, self.sign, self.wanted))


class RecordFilter(NamedTuple):
    """The conditions that a record must meet; an empty condition is met."""

    key: bytes = b""
    value: bytes = b""
    header: bytes = b""
    document: JsonCondition | None = None
    """A condition on the value, if it is JSON or another document."""

    def __bool__(self) -> bool:
        return bool(self.key or self.value or self.header or self.document)

    def passes(self, record: Record, key: bytes | None, value: bytes | None) -> bool:
        """True if a record meets all conditions; `key` and `value` are its own, or the JSON text of their documents."""
        if self.key and self.key not in (key or b""):
            return False
        if self.value and self.value not in (value or b""):
            return False
        if self.header and not any(self.header in line for line in header_lines(record)):
            return False
        return self.document is None or self.document(parse_json(value or b""))


def header_lines(record: Record) -> list[bytes]:
    """Returns the headers of a record as NAME=VALUE."""
    return [name.encode(errors="surrogateescape") + b"=" + (value or b"") for name, value in record.headers]


def filter_of(parameters: Mapping[str, str]) -> RecordFilter:
    """Returns the filter that the parameters of a URL name. Raises CommandError."""
    expression = parameters.get("json", "")
    return RecordFilter(
        parameters.get("key", "").encode(),
        parameters.get("value", "").encode(),
        parameters.get("header", "").encode(),
        json_condition(expression) if expression else None,
    )


def json_condition(expression: str) -> JsonCondition:
    """Returns the condition of an expression: a path that must exist, or a comparison with the value at the path.
    Raises CommandError."""
    match = EXPRESSION.fullmatch(expression)
    steps = _steps(match["path"]) if match is not None else None
    if match is None or steps is None:
        raise misuse(f"json {expression[:80]}: expected {PATH_HELP}")
    return JsonCondition(tuple(steps), match["sign"] or "", (match["value"] or "").strip("\"'"))


def _steps(path: str) -> list[str | int] | None:
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = STEP.match(path, position)
        if match is None:
            return None
        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    return steps or None


def _at(document: object, steps: Sequence[str | int]) -> object:
    for step in steps:
        document = _inside(document, step)
    return document


def _inside(document: object, step: str | int) -> object:
    """Returns the member of an object, or the item of a list."""
    if isinstance(step, str):
        return document.get(step, MISSING) if isinstance(document, dict) else MISSING
    return document[step] if isinstance(document, list) and step < len(document) else MISSING


def _compare(value: object, sign: str, wanted: str) -> bool:
    text = _text(value)
    if sign == "~":
        return wanted in text
    if sign in "=!=":
        return (text == wanted) == (sign == "=")
    try:
        number, limit = float(text), float(wanted)
    except ValueError:
        return (text < wanted) if sign == "<" else (text > wanted)
    return (number < limit) if sign == "<" else (number > limit)


def _text(value: object) -> str:
    """Returns a JSON value as it is written in an expression."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
