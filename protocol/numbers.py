"""Whole numbers in texts that a peer chose, as Java reads them.

`int` alone reads more than Java does (blanks around a number, underscores in it), and raises ValueError for more than
4,300 digits, even if they are zeros.
"""

from __future__ import annotations

from typing import Final

INT64: Final = range(-(1 << 63), 1 << 63)
MAX_DIGITS: Final = 19
"""Of the numbers in INT64."""

PORTS: Final = range(1 << 16)


def whole_number(text: str) -> int | None:
    """Returns the number that a text spells: decimal digits behind a sign, if any (Long.parseLong). None for another
    text, and for a number that no int64 can hold."""
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
    """Returns the port that a text spells in digits; None for another text."""
    if not text.isascii() or not text.isdecimal():
        return None
    value = whole_number(text)
    return value if value in PORTS else None


def longest_number(digits: str, most: int) -> tuple[int, int]:
    """Returns the number that the first digits spell, as many as do not exceed `most`, and how many these are: 0 if not
    even the first."""
    value = count = 0
    for digit in digits:
        if value * 10 + int(digit) > most:
            break
        value = value * 10 + int(digit)
        count += 1
    return value, count
