"""Fixtures of the tests of whole brokers."""

from __future__ import annotations

import pytest

from broker.request import turns

NEVER_NS = 1 << 62


@pytest.fixture(autouse=True)
def turns_that_end_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """By time, which requests make a turn would say how busy the machine is. `test_turns.py` has a clock for that."""
    monkeypatch.setattr(turns, "_TURN_NS", NEVER_NS)
