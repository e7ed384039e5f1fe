"""The log of a broker under test, with a JSON object per line."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

CLOSED = "connection closed"
SUPPRESSED = "connections refused or closed without a line"
AUDIT = "audit"


class BrokerLog:
    """Reads the lines that a broker has logged since the last call."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = 0
        self.skip()

    def skip(self) -> None:
        """Skips the lines logged so far."""
        self._seen = len(self._text())

    def lines(self) -> list[dict[str, Any]]:
        """Returns the new lines. Raises AssertionError for a line that isn't JSON, such as a traceback."""
        text = self._text()[self._seen :]
        whole = text[: text.rfind("\n") + 1]
        self._seen += len(whole)
        lines: list[dict[str, Any]] = []
        for line in whole.splitlines():
            assert line.startswith("{"), f"no line of the broker's: {whole}"
            lines.append(json.loads(line))
        return lines

    def until(self, event: str, timeout_s: float) -> list[dict[str, Any]]:
        """Returns the new lines, once one has this event; fewer at the timeout."""
        lines: list[dict[str, Any]] = []
        end = time.monotonic() + timeout_s
        while not any(line["event"] == event for line in lines) and time.monotonic() < end:
            lines += self.lines()
            time.sleep(0.02)  # a program that writes to its log wakes nobody: it can only be read again
        return lines

    def _text(self) -> str:
        return self._file.read_text(errors="replace")


def check_refusals(lines: list[dict[str, Any]]) -> None:
    """Raises AssertionError if the log has more than a line for each connection, besides the audit lines."""
    for line in lines:
        assert "exception" not in line, line
        assert line["level"] in ("info", "warning"), line
        assert line["level"] == "info" or line["event"] in (CLOSED, SUPPRESSED), line
    peers = Counter(line["peer"] for line in lines if line["event"] == CLOSED)
    assert not peers or max(peers.values()) == 1, peers
