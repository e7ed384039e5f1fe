"""How many lines the log gets of what a client can have as many of as it likes.

So many of one address in a minute, so many of all; the rest are counted, and told in one line when the minute is over.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

INTERVAL_MS: Final = 60_000
LINES_OF_ADDRESS: Final = 10
"""In an interval. A client that is wrong about something says the same each time."""

LINES: Final = 200
"""In an interval, of all addresses: less than a hundred megabytes a day, however many there are."""


class LogLines:
    """LogLines of one kind."""

    def __init__(self) -> None:
        self._written: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._left_out_of_others = 0

    def takes(self, ip: str) -> bool:
        """True when there is to be one more line that an address is the cause of. If not, it is counted."""
        if self._written.total() < LINES and self._written[ip] < LINES_OF_ADDRESS:
            self._written[ip] += 1
            return True
        if ip in self._left_out or len(self._left_out) < LINES:
            self._left_out[ip] += 1
        else:
            self._left_out_of_others += 1
        return False

    def begin_anew(self) -> dict[str, object]:
        """Returns an interval is over; what was left out in it, as fields of a line, empty if nothing was."""
        fields: dict[str, object] = {}
        if self._left_out:
            ip, most = self._left_out.most_common(1)[0]
            fields = {"count": self._left_out.total() + self._left_out_of_others, "most_of": ip, "of_it": most}
        self._written.clear()
        self._left_out.clear()
        self._left_out_of_others = 0
        return fields
