"""Fixtures of the tests of whole brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.request import turns
from tests.log_lines import Line, log_lines

NEVER_NS = 1 << 62


@pytest.fixture(autouse=True)
def turns_that_end_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """By time, which requests make a turn would say how busy the machine is. `test_turns.py` has a clock for that."""
    monkeypatch.setattr(turns, "_TURN_NS", NEVER_NS)


@pytest.fixture
def logged() -> Iterator[list[Line]]:
    """The lines that are logged in this process."""
    lines: list[Line] = []
    with log_lines(lines.append):
        yield lines
