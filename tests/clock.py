"""The clock of all tests: the time of a `ManualClock` changes only when a test advances it, unless it has a time that
passes. Whole brokers have the machine's (`running_clock`), simulations the time of their event loop
(`tests/simulation/virtual_time.py`)."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from itertools import count

from broker.clock import Timer

NS_PER_MS = 1_000_000
START_MS = 1_700_000_000_000
PATIENCE_S = 20
"""A test fails if no timer is set for this time. A test that passes doesn't wait for it."""


class ManualTimer:
    """A timer of a ManualClock; `when_ms` is its monotonic time."""

    def __init__(self, when_ms: float, then: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.when_ms = when_ms
        self.then = then
        self.is_cancelled = False
        self._cancelled = cancelled

    def cancel(self) -> None:
        self.is_cancelled = True
        self._cancelled()


class ManualClock:
    """A `broker.clock.Clock` that a test controls. `advance` calls each timer at its time. With a new `time_ms` and
    `ring`, timers are called late, as by a busy event loop."""

    def __init__(
        self,
        time_ms: float = START_MS,
        *,
        ahead_ms: int = 0,
        tick_ms: int = 0,
        passed_ms: Callable[[], float] | None = None,
    ) -> None:
        """The time of day is `ahead_ms` ahead of the monotonic time; each reading of the monotonic time moves it by
        `tick_ms`. `passed_ms` returns the time that passes by itself, whose timers the event loop calls."""
        self._time_ms = time_ms
        self._passed_ms = passed_ms
        self._tick_ms = tick_ms
        self._ahead_ms = ahead_ms
        self._numbers = count()
        self._heap: list[tuple[float, int, ManualTimer]] = []
        self._changed = asyncio.Event()

    @property
    def time_ms(self) -> float:
        """The monotonic time."""
        return self._time_ms if self._passed_ms is None else self._time_ms + self._passed_ms()

    @time_ms.setter
    def time_ms(self, time_ms: float) -> None:
        self._time_ms += time_ms - self.time_ms

    def now_ms(self) -> int:
        return int(self.time_ms) + self._ahead_ms

    def monotonic_ms(self) -> int:
        self._time_ms += self._tick_ms
        return int(self.time_ms)

    def monotonic_ns(self) -> int:
        self._time_ms += self._tick_ms
        return round(self.time_ms * NS_PER_MS)

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self.call_after(when_ms - self._ahead_ms - self.time_ms, then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        if self._passed_ms is not None:
            return asyncio.get_running_loop().call_later(max(delay_ms, 0) / 1000, then)
        timer = ManualTimer(self.time_ms + delay_ms, then, self._tidy)
        heapq.heappush(self._heap, (timer.when_ms, next(self._numbers), timer))
        self._changed.set()
        return timer

    @property
    def timers(self) -> list[ManualTimer]:
        """Returns the timers that are set, the earliest first."""
        return [timer for *_, timer in sorted(self._heap, key=lambda entry: entry[:2]) if not timer.is_cancelled]

    def advance(self, by_ms: float) -> None:
        """Moves the time, and calls each timer when its time comes."""
        end_ms = self.time_ms + by_ms
        while self._heap and self._heap[0][0] <= end_ms:
            when_ms, _, timer = heapq.heappop(self._heap)
            self.time_ms = max(self.time_ms, when_ms)
            self._call(timer)
        self.time_ms = end_ms

    def ring(self) -> None:
        """Calls the timers that are due now. A timer that is set by such a call waits for the next `ring`."""
        due = []
        while self._heap and self._heap[0][0] <= self.time_ms:
            due.append(heapq.heappop(self._heap)[2])
        for timer in due:
            self._call(timer)

    async def next_timer(self) -> float:
        """Waits until a timer is set; returns the milliseconds until the earliest timer is due."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.timers:
                self._changed.clear()
                await self._changed.wait()
        return self.timers[0].when_ms - self.time_ms

    def _call(self, timer: ManualTimer) -> None:
        if not timer.is_cancelled:
            timer.then()

    def _tidy(self) -> None:
        while self._heap and self._heap[0][2].is_cancelled:
            heapq.heappop(self._heap)


def running_clock() -> ManualClock:
    """Returns a clock for a whole broker, whose threads and timers need time that passes; a test may advance it."""
    begun_ms = time.monotonic() * 1000
    return ManualClock(time.time() * 1000, passed_ms=lambda: time.monotonic() * 1000 - begun_ms)
