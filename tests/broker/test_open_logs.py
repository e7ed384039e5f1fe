"""Tests the log lines of a start about the logs that it opens."""

from __future__ import annotations

import pytest

from broker.disks import open_logs
from tests.clock import ManualClock


def test_a_start_that_takes_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, object]] = []
    monkeypatch.setattr("broker.logging.Logger.info", lambda self, event, **fields: logged.append(fields))
    clock = ManualClock()
    opening = open_logs.Opening(clock)
    for opened in range(1, 101):
        clock.advance(50)
        opening.progress("/data", opened, 100)
    assert logged == [
        {"log_dir": "/data", "opened": 40, "total": 100},
        {"log_dir": "/data", "opened": 80, "total": 100},
    ]
