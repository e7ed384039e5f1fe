"""Limits the log lines that clients can cause, in a minute: for each address, and for all addresses.

The others are suppressed, and counted in one line when the minute is over.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

INTERVAL_MS: Final = 60_000
LINES_OF_ADDRESS: Final = 10
"""Lines of one address in an interval: a client that keeps failing fails for the same reason each time."""

LINES: Final = 200
"""Lines of all addresses in an interval: less than a hundred megabytes a day, however many addresses there are."""


class LogLimiter:
    """Limits the log lines of one kind."""

    def __init__(self) -> None:
        self._written: Counter[str] = Counter()
        self._suppressed: Counter[str] = Counter()
        self._suppressed_of_others = 0

    def allows(self, ip: str) -> bool:
        """True if the log may have one more line that an address causes. Otherwise the line counts as suppressed."""
        if self._written.total() < LINES and self._written[ip] < LINES_OF_ADDRESS:
            self._written[ip] += 1
            return True
        if ip in self._suppressed or len(self._suppressed) < LINES:
            self._suppressed[ip] += 1
        else:
            self._suppressed_of_others += 1
        return False

    def begin_interval(self) -> dict[str, object]:
        """Begins an interval. Returns the suppressed lines of the last interval as fields of a log line; empty if there
        are none."""
        fields: dict[str, object] = {}
        if self._suppressed:
            ip, most = self._suppressed.most_common(1)[0]
            fields = {"count": self._suppressed.total() + self._suppressed_of_others, "most_of": ip, "of_it": most}
        self._written.clear()
        self._suppressed.clear()
        self._suppressed_of_others = 0
        return fields
