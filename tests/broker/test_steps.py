"""Tests that work of many pieces runs in steps, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from broker.steps import STEP_MS, Steps
from tests.clock import ManualClock


class Pieces:
    """Work whose steps take a millisecond each, by their own clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.done: list[str] = []

    def work(self, name: str, count: int) -> Iterator[None]:
        for _ in range(count):
            self.clock.advance(1)
            self.done.append(name)
            yield

    def failing(self) -> Iterator[None]:
        yield
        raise ValueError


async def turn() -> None:
    """Runs one turn of the event loop."""
    await asyncio.sleep(0)


async def test_a_few_pieces_run_at_once() -> None:
    pieces = Pieces()
    Steps(pieces.clock).run(pieces.work("a", STEP_MS))
    assert len(pieces.done) == STEP_MS


async def test_many_pieces_run_in_steps() -> None:
    pieces = Pieces()
    Steps(pieces.clock).run(pieces.work("a", 3 * STEP_MS))
    for steps in (1, 2, 3, 3):
        assert len(pieces.done) == steps * STEP_MS
        await turn()


async def test_later_work_waits_for_earlier_work() -> None:
    pieces = Pieces()
    steps = Steps(pieces.clock)
    for name in ("a", "b"):
        steps.run(pieces.work(name, 2 * STEP_MS))
    await steps.over()
    assert pieces.done == ["a"] * 2 * STEP_MS + ["b"] * 2 * STEP_MS


async def test_a_caller_waits_only_for_the_work_before_it() -> None:
    pieces = Pieces()
    steps = Steps(pieces.clock)
    steps.run(pieces.work("a", 2 * STEP_MS))
    waiting = asyncio.ensure_future(steps.over())
    await turn()
    steps.run(pieces.work("b", 100 * STEP_MS))
    await waiting
    assert pieces.done.count("a") == 2 * STEP_MS
    assert pieces.done.count("b") < 10 * STEP_MS


async def test_work_that_fails_stops_no_other_work() -> None:
    pieces = Pieces()
    steps = Steps(pieces.clock)
    with pytest.raises(ValueError):
        steps.run(pieces.failing())
    steps.run(pieces.work("a", 1))
    await steps.over()
    assert pieces.done == ["a"]


async def test_a_stop_runs_the_rest() -> None:
    pieces = Pieces()
    steps = Steps(pieces.clock)
    steps.run(pieces.work("a", 3 * STEP_MS))
    steps.stop()
    assert len(pieces.done) == 3 * STEP_MS
    steps.run(pieces.work("b", 3 * STEP_MS))
    assert len(pieces.done) == 6 * STEP_MS


def test_work_that_is_queued_by_work_at_a_stop_follows_it() -> None:
    steps, done = Steps(ManualClock()), list[str]()

    def inner() -> Iterator[None]:
        done.append("inner")
        yield

    def outer() -> Iterator[None]:
        steps.run(inner())
        yield
        done.append("outer")

    steps.stop()
    steps.run(outer())
    assert done == ["outer", "inner"]
