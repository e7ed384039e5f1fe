"""Reads Java's .properties format (java.util.Properties.load), with comments, continued lines, escapes, and the
separators `=`, `:` and blank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.config import ConfigError

BLANK: Final = " \t\f"
ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A key, its value, and the number of the line where the property begins."""

    name: str
    value: str
    line: int


def read_properties(text: str) -> Iterator[Property]:
    """Yields the properties of a file's text, in order; a name may repeat. Raises ConfigError for an invalid
    \\uXXXX."""
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        try:
            yield Property(_unescape(line[:end]), _unescape(_after_separator(line[end:])), number)
        except ValueError:
            raise ConfigError(f"line {number}: \\u must be followed by four hexadecimal digits") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines that have a property, joined with their continuation lines."""
    joined, start = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(BLANK)
        if not start and (not line or line[0] in "#!"):
            continue
        start = start or number
        joined += line
        if _continues(line):
            joined = joined[:-1]
            continue
        yield start, joined
        joined, start = "", 0
    if start:
        yield start, joined


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + BLANK:
        position += 2 if line[position] == "\\" else 1
    return position


def _after_separator(rest: str) -> str:
    rest = rest.lstrip(BLANK)
    return rest[1:].lstrip(BLANK) if rest[:1] in ("=", ":") else rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts, position = [], 0
    while (backslash := text.find("\\", position)) >= 0:
        escaped = text[backslash + 1 : backslash + 2]
        parts.append(text[position:backslash])
        if escaped == "u":
            parts.append(_code_unit(text[backslash + 2 : backslash + 6]))
            position = backslash + 6
        else:
            parts.append(ESCAPES.get(escaped, escaped))
            position = backslash + 2
    return _joined_surrogates("".join(parts) + text[position:])


def _code_unit(digits: str) -> str:
    if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ValueError(digits)
    return chr(int(digits, 16))


def _joined_surrogates(text: str) -> str:
    """Joins pairs of surrogates, because two \\u escapes may spell a character beyond the basic plane."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
