"""Tests the creation of new partitions' logs in steps, between which other work runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.replica.new_logs import NewLogs
from broker.steps import STEP_MS
from tests.clock import ManualClock


class Logs:
    """Logs whose creation takes a millisecond each, by their own clock."""

    def __init__(self, takes_ms: int = 1) -> None:
        self.clock = ManualClock()
        self.takes_ms = takes_ms
        self.made: list[str] = []

    def log(self, name: str) -> Callable[[], None]:
        def make() -> None:
            self.clock.advance(self.takes_ms)
            self.made.append(name)

        return make


@pytest.fixture
def logs() -> Logs:
    return Logs()


@pytest.fixture
def new_logs(logs: Logs) -> NewLogs:
    return NewLogs(logs.clock)


async def turn() -> None:
    """Runs one turn of the event loop."""
    await asyncio.sleep(0)


async def test_a_few_logs_are_made_at_once(logs: Logs, new_logs: NewLogs) -> None:
    assert all(new_logs.make("t", logs.log(name)) for name in "abc")
    assert logs.made == ["a", "b", "c"]


async def test_after_some_milliseconds_the_others_have_their_turn(logs: Logs, new_logs: NewLogs) -> None:
    made = [new_logs.make("t", logs.log("log")) for _ in range(3 * STEP_MS)]
    assert made == [True] * STEP_MS + [False] * 2 * STEP_MS
    for steps in (1, 2, 3, 3):
        assert len(logs.made) == steps * STEP_MS
        await turn()


async def test_each_step_makes_a_log_however_long_it_takes() -> None:
    logs = Logs(takes_ms=10 * STEP_MS)
    new_logs = NewLogs(logs.clock)
    assert [new_logs.make("t", logs.log(name)) for name in "abc"] == [True, False, False]
    await turn()
    assert logs.made == ["a", "b"]
    await turn()
    assert logs.made == ["a", "b", "c"]


async def test_each_turn_has_its_own_milliseconds(logs: Logs, new_logs: NewLogs) -> None:
    for _ in range(3):
        assert all(new_logs.make("t", logs.log("log")) for _ in range(STEP_MS))
        await turn()


async def test_who_waits_goes_on_when_the_last_log_is_made(logs: Logs, new_logs: NewLogs) -> None:
    for _ in range(3 * STEP_MS):
        new_logs.make("t", logs.log("log"))
    await new_logs.made(["another", "t"])
    assert len(logs.made) == 3 * STEP_MS


async def test_nobody_waits_for_what_is_made(logs: Logs, new_logs: NewLogs) -> None:
    new_logs.make("t", logs.log("a"))
    waiting = asyncio.ensure_future(new_logs.made(["t"]))
    await turn()
    assert waiting.done()


async def test_a_small_topic_does_not_wait_for_a_large_one(logs: Logs, new_logs: NewLogs) -> None:
    for _ in range(10 * STEP_MS):
        new_logs.make("large", logs.log("large"))
    for _ in range(2):
        new_logs.make("small", logs.log("small"))
    await new_logs.made(["small"])
    assert logs.made[STEP_MS:][:4] == ["large", "small", "large", "small"]


async def test_partitions_of_a_topic_are_made_in_their_order(logs: Logs, new_logs: NewLogs) -> None:
    names = [str(index) for index in range(3 * STEP_MS)]
    for name in names:
        new_logs.make("t", logs.log(name))
    await new_logs.made(["t"])
    assert logs.made == names


async def test_what_is_left_of_a_deleted_topic_is_not_made(logs: Logs, new_logs: NewLogs) -> None:
    for _ in range(3 * STEP_MS):
        new_logs.make("t", logs.log("log"))
    waiting = asyncio.ensure_future(new_logs.made(["t"]))
    await turn()
    made = len(logs.made)
    new_logs.forget("t")
    await waiting
    assert len(logs.made) == made
    assert new_logs.make("t", logs.log("of the next topic of this name"))


async def test_a_stop_lets_go_of_who_waits_and_makes_no_more(logs: Logs, new_logs: NewLogs) -> None:
    for _ in range(3 * STEP_MS):
        new_logs.make("t", logs.log("log"))
    new_logs.stop()
    await new_logs.made(["t"])
    assert not new_logs.make("another", logs.log("log"))
    await turn()
    assert len(logs.made) == STEP_MS


async def test_a_log_that_cannot_be_made_holds_up_no_other(logs: Logs, new_logs: NewLogs) -> None:
    def fail() -> None:
        raise ValueError("it cannot be")

    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
    for _ in range(STEP_MS):
        new_logs.make("t", logs.log("log"))
    for work in (fail, logs.log("another"), fail):
        new_logs.make("t", work)
    await new_logs.made(["t"])
    assert logs.made[STEP_MS:] == ["another"]
    assert len(errors) == 2
