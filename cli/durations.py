"""Durations: parses the user's input. A broker needs no times, and so not the memory of `datetime`."""

from __future__ import annotations

from typing import Final

UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_duration(text: str) -> int:
    """Returns the milliseconds of a number with a unit, such as 90s, 1.5h or 500ms. Raises ValueError."""
    digits = text.rstrip("mshdw")
    unit = text[len(digits) :]
    try:
        number = float(digits)
    except ValueError:
        number = -1
    if unit not in UNIT_MS or not 0 <= number < 1e12:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 90s, 15m, 1.5h, 7d")
    return int(number * UNIT_MS[unit])
