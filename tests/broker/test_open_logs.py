"""Tests the log lines of a start about the logs that it opens."""

from __future__ import annotations

from broker.disks import open_logs
from tests.clock import ManualClock
from tests.log_lines import Line


def test_a_start_that_takes_long_says_how_far_it_is(logged: list[Line]) -> None:
    clock = ManualClock()
    opening = open_logs.Opening(clock)
    for opened in range(1, 101):
        clock.advance(50)
        opening.progress("/data", opened, 100)
    assert [line.fields for line in logged] == [
        {"log_dir": "/data", "opened": 40, "total": 100},
        {"log_dir": "/data", "opened": 80, "total": 100},
    ]
