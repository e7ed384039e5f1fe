"""Times: parses the user's input, and formats them for tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from cli.durations import parse_duration

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str, now_ms: int) -> int:
    """Returns milliseconds since the epoch. Accepts an ISO 8601 time (UTC unless it has a zone), milliseconds, or a
    duration before now, such as -15m. Raises ValueError."""
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - parse_duration(text[1:])
    if text.isascii() and text.isdecimal() and len(text) > 8:  # fewer digits are a date, 20260131
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31T12:00:00, 1767225600000 or -15m") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(milliseconds=1)


def show_time(timestamp_ms: int) -> str | None:
    """Returns a timestamp in ISO 8601 and UTC; None if it is negative, and the number itself if it is beyond the range
    of dates."""
    if timestamp_ms < 0:
        return None
    try:
        return (EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return str(timestamp_ms)
