"""Fixtures of the tests of whole brokers."""

from __future__ import annotations

import pytest

from broker.request import turns

NEVER_NS = 1 << 62


@pytest.fixture(autouse=True)
def turns_that_end_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends turns by a count of clock reads. With the machine's clock, the requests of a turn would depend on how busy
    the machine is. `test_turns.py` uses its own clock."""
    monkeypatch.setattr(turns, "_TURN_NS", NEVER_NS)
