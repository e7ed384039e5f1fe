"""Fixtures of the tests of whole brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.request import turns
from tests.log_lines import Line, log_lines

NEVER_NS = 1 << 62


@pytest.fixture(autouse=True)
def turns_that_end_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends turns by a count of clock reads. With the machine's clock, the requests of a turn would depend on how busy
    the machine is. `test_turns.py` uses its own clock."""
    monkeypatch.setattr(turns, "_TURN_NS", NEVER_NS)


@pytest.fixture
def logged() -> Iterator[list[Line]]:
    """Yields the lines that are logged in this process."""
    lines: list[Line] = []
    with log_lines(lines.append):
        yield lines


@pytest.fixture
def lines() -> Iterator[list[Line]]:
    """The lines that the listener and the dispatcher log."""
    lines: list[Line] = []
    names = {"broker.network.connection", "broker.dispatch.route"}
    with log_lines(lambda line: lines.append(line) if line.logger in names else None):
        yield lines
