"""Parses whole numbers in a peer's text as Java does.

Python's `int` accepts more than Java (blanks around a number, underscores in it), and raises ValueError for more than
4,300 digits, even if they are zeros.
"""

from __future__ import annotations

from typing import Final

INT64: Final = range(-(1 << 63), 1 << 63)
MAX_DIGITS: Final = 19
"""Maximum number of digits of a number in INT64."""

PORTS: Final = range(1 << 16)


def whole_number(text: str) -> int | None:
    """Parses decimal digits after an optional sign (Long.parseLong). Returns None for any other text, and for a number
    that doesn't fit into an int64."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        return None
    significant = digits.lstrip("0")
    if len(significant) > MAX_DIGITS:
        return None
    value = int(significant or "0")
    if text[0] == "-":
        value = -value
    return value if value in INT64 else None


def port_number(text: str) -> int | None:
    """Parses a port in ASCII digits. Returns None for any other text."""
    if not text.isascii() or not text.isdecimal():
        return None
    value = whole_number(text)
    return value if value in PORTS else None


def longest_number(digits: str, most: int) -> tuple[int, int]:
    """Parses the longest prefix of the digits whose number is at most `most`. Returns the number, and the prefix's
    length, which may be 0."""
    value = count = 0
    for digit in digits:
        if value * 10 + int(digit) > most:
            break
        value = value * 10 + int(digit)
        count += 1
    return value, count
