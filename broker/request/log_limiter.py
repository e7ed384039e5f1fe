"""Limits the log lines that clients can cause in a minute, per address and in total.

Further lines are suppressed, and their number is logged at the end of the minute.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

INTERVAL_MS: Final = 60_000
LINES_OF_ADDRESS: Final = 10
"""Lines of one address in an interval. A client that keeps failing usually fails for the same reason each time."""

LINES: Final = 200
"""Lines of all addresses in an interval: less than a hundred megabytes a day, however many addresses there are."""


class LogLimiter:
    """Limits the log lines of one kind."""

    def __init__(self) -> None:
        self._written: Counter[str] = Counter()
        self._suppressed: Counter[str] = Counter()
        self._suppressed_of_others = 0

    def allows(self, ip: str) -> bool:
        """True if an address may cause one more line; otherwise counts the line as suppressed."""
        if self._written.total() < LINES and self._written[ip] < LINES_OF_ADDRESS:
            self._written[ip] += 1
            return True
        if ip in self._suppressed or len(self._suppressed) < LINES:
            self._suppressed[ip] += 1
        else:
            self._suppressed_of_others += 1
        return False

    def begin_interval(self) -> dict[str, object]:
        """Begins an interval. Returns the number of lines that the last one suppressed, as fields of a log line; empty
        if none.
        """
        fields: dict[str, object] = {}
        if self._suppressed:
            ip, most = self._suppressed.most_common(1)[0]
            fields = {"count": self._suppressed.total() + self._suppressed_of_others, "most_of": ip, "of_it": most}
        self._written.clear()
        self._suppressed.clear()
        self._suppressed_of_others = 0
        return fields
