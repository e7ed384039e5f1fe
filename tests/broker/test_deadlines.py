"""Tests deadlines that expire in the order in which they were set."""

from __future__ import annotations

import pytest

from broker.network.unauthenticated import Deadlines
from tests.clock import ManualClock

WAIT_MS = 100


class Row:
    """Deadlines, and the expired ones with their times."""

    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.deadlines: Deadlines[str] = Deadlines(self.clock, WAIT_MS, self.pass_one)
        self.passed: list[tuple[str, int]] = []

    def pass_one(self, name: str) -> None:
        self.passed.append((name, self.clock.monotonic_ms()))
        if name == "fault":
            raise RuntimeError(name)


def test_each_passes_at_its_time() -> None:
    row = Row()
    row.deadlines.add("a")
    row.clock.advance(30)
    row.deadlines.add("b")
    row.clock.advance(1_000)
    row.deadlines.add("c")
    row.clock.advance(WAIT_MS - 1)
    assert (row.passed, len(row.deadlines)) == ([("a", 100), ("b", 130)], 1)
    row.clock.advance(1)
    assert row.passed[2:] == [("c", 1_130)]


def test_one_that_is_taken_out_passes_no_more_and_the_others_do() -> None:
    row = Row()
    for name in ("a", "b", "c"):
        row.deadlines.add(name)
        row.clock.advance(10)
    assert row.deadlines.discard("a")
    assert not row.deadlines.discard("a")
    assert row.deadlines.pop() == "b"
    row.clock.advance(1_000)
    assert row.passed == [("c", 120)]
    with pytest.raises(KeyError):
        row.deadlines.pop()


def test_there_is_one_timer_for_all_and_none_for_nobody() -> None:
    row = Row()
    for name in map(str, range(1_000)):
        row.deadlines.add(name)
    assert len(row.clock.timers) == 1
    row.clock.advance(WAIT_MS)
    assert (len(row.passed), row.clock.timers) == (1_000, [])


def test_one_may_be_added_again_as_its_deadline_passes() -> None:
    row = Row()
    again: list[int] = []

    def add_again(name: str) -> None:
        again.append(row.clock.monotonic_ms())
        deadlines.add(name)

    deadlines: Deadlines[str] = Deadlines(row.clock, WAIT_MS, add_again)
    deadlines.add("a")
    row.clock.advance(3 * WAIT_MS)
    assert (again, len(row.clock.timers)) == ([100, 200, 300], 1)


def test_a_fault_over_one_does_not_keep_the_others_waiting() -> None:
    row = Row()
    for name in ("fault", "a", "b"):
        row.deadlines.add(name)
    with pytest.raises(RuntimeError):
        row.clock.advance(WAIT_MS)
    row.clock.advance(1)
    assert [name for name, _ in row.passed] == ["fault", "a", "b"]
