"""Tests that time passes only when it is advanced, and that due timers run in the order of their times."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest

from programs.control.travelling import TravellingClock, TravellingLoop

SECOND_MS = 1_000
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS
NEAR_MS = 500
"""Tolerance, because the machine's own time passes as well."""


class Journey:
    """A loop whose clock can be advanced, and the events on it with their times."""

    def __init__(self) -> None:
        self.clock = TravellingClock()
        self.begun_ms = self.clock.monotonic_ms()
        self.happened: list[tuple[str, int]] = []

    def note(self, name: str) -> None:
        self.happened.append((name, self.clock.monotonic_ms() - self.begun_ms))

    def due(self, delay_ms: float, name: str, then: Callable[[], None] = lambda: None) -> None:
        def ring() -> None:
            self.note(name)
            then()

        self.clock.call_after(delay_ms, ring)

    async def travel(self, distance_ms: int) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TravellingLoop)
        return await loop.travel(distance_ms)

    def run(self, main: Callable[[], Coroutine[object, object, None]]) -> None:
        with asyncio.Runner(loop_factory=lambda: TravellingLoop(self.clock)) as runner:
            runner.run(main())

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.happened]


@pytest.fixture
def journey() -> Journey:
    return Journey()


def at(journey: Journey, name: str) -> int:
    """Returns the time at which an event happened."""
    return next(time_ms for other, time_ms in journey.happened if other == name)


def test_what_is_due_happens_at_its_time_and_in_the_order_of_times(journey: Journey) -> None:
    async def main() -> None:
        journey.due(2 * HOUR_MS, "transaction")
        journey.due(45 * SECOND_MS, "session", lambda: journey.due(5 * 60 * SECOND_MS, "rebalance"))
        journey.due(30 * HOUR_MS, "later")
        assert await journey.travel(3 * HOUR_MS) == 3

    journey.run(main)
    assert journey.names == ["session", "rebalance", "transaction"]
    for name, time_ms in {"session": 45 * SECOND_MS, "rebalance": 345 * SECOND_MS, "transaction": 2 * HOUR_MS}.items():
        assert time_ms <= at(journey, name) < time_ms + NEAR_MS


def test_both_clocks_and_the_loop_are_further_by_the_journey(journey: Journey) -> None:
    async def main() -> None:
        clock, loop = journey.clock, asyncio.get_running_loop()
        before = clock.now_ms(), clock.monotonic_ms(), loop.time()
        await journey.travel(WEEK_MS)
        assert WEEK_MS <= clock.now_ms() - before[0] < WEEK_MS + NEAR_MS
        assert WEEK_MS <= clock.monotonic_ms() - before[1] < WEEK_MS + NEAR_MS
        assert WEEK_MS <= (loop.time() - before[2]) * 1000 < WEEK_MS + NEAR_MS

    journey.run(main)


def test_the_loop_s_own_waits_travel_too(journey: Journey) -> None:
    async def main() -> None:
        async def slept() -> None:
            await asyncio.sleep(60)
            journey.note("slept")

        async def timed_out() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(90):
                    await asyncio.Event().wait()
            journey.note("timed out")

        tasks = [asyncio.create_task(timed_out()), asyncio.create_task(slept())]
        await journey.travel(HOUR_MS)
        assert all(task.done() for task in tasks)

    journey.run(main)
    assert journey.names == ["slept", "timed out"]


def test_a_job_of_each_second_does_not_run_for_each_second_of_a_week(journey: Journey) -> None:
    async def main() -> None:
        async def job() -> None:
            while True:
                await asyncio.sleep(1)
                journey.note("job")

        task = asyncio.create_task(job())
        await journey.travel(WEEK_MS)
        task.cancel()

    journey.run(main)
    times = [time_ms for _, time_ms in journey.happened]
    assert 100 < len(times) < 1000
    for second, time_ms in enumerate(times[:18], 1):
        assert second * SECOND_MS <= time_ms < second * SECOND_MS + NEAR_MS
    assert times[-1] >= WEEK_MS - SECOND_MS


def test_what_a_timer_began_in_a_thread_is_done_before_the_next_one(journey: Journey) -> None:
    async def main() -> None:
        loop, held = asyncio.get_running_loop(), threading.Event()

        async def work() -> None:
            threading.Timer(0.05, held.set).start()
            await loop.run_in_executor(None, held.wait)
            await asyncio.sleep(0)
            journey.note("worked")

        tasks: list[asyncio.Task[None]] = []
        journey.due(10, "begun", lambda: tasks.append(loop.create_task(work())))
        journey.due(20, "next")
        await journey.travel(HOUR_MS)

    journey.run(main)
    assert journey.names == ["begun", "worked", "next"]


def test_a_cancelled_timer_is_passed_over_and_one_that_fails_ends_no_journey(journey: Journey) -> None:
    failures: list[str] = []

    def fail() -> None:
        raise RuntimeError("on purpose")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(str(context["exception"])))
        journey.clock.call_after(SECOND_MS, lambda: journey.note("never")).cancel()
        journey.clock.call_after(SECOND_MS, fail)
        journey.due(2 * SECOND_MS, "after")
        await journey.travel(HOUR_MS)

    journey.run(main)
    assert (journey.names, failures) == (["after"], ["on purpose"])


def test_two_journeys_at_once_are_one_after_the_other(journey: Journey) -> None:
    async def main() -> None:
        await asyncio.gather(journey.travel(HOUR_MS), journey.travel(HOUR_MS))
        assert 2 * HOUR_MS <= journey.clock.monotonic_ms() - journey.begun_ms < 2 * HOUR_MS + NEAR_MS

    journey.run(main)


def test_timers_ring_by_themselves_before_and_after_a_journey(journey: Journey) -> None:
    async def main() -> None:
        await asyncio.sleep(0.01)
        await journey.travel(HOUR_MS)
        later = asyncio.Event()
        journey.due(30, "second", later.set)
        journey.due(10, "first")
        async with asyncio.timeout(60):
            await later.wait()

    journey.run(main)
    assert journey.names == ["first", "second"]


def test_a_timer_that_would_ring_at_the_end_does(journey: Journey) -> None:
    async def main() -> None:
        journey.due(HOUR_MS, "at the end")
        await journey.travel(HOUR_MS)

    journey.run(main)
    assert journey.names == ["at the end"]
