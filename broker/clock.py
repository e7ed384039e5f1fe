"""The time, in one place: everything else takes the time as an argument."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

TIMER_RESOLUTION_NS: Final = NS_PER_MS // 2
"""An event loop counts in milliseconds, and may call a timer this much too early."""


class Timer(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The broker's source of time; a simulation brings its own."""

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, as records carry them."""
        ...

    def monotonic_ms(self) -> int:
        """Returns milliseconds that only grow, for deadlines."""
        ...

    def monotonic_ns(self) -> int:
        """Returns nanoseconds that only grow, for the duration of requests."""
        ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once `now_ms` has come to `when_ms`."""
        ...

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop after `delay_ms`, whatever happens to the time of day."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // NS_PER_MS

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self.call_after(max(when_ms - self.now_ms(), 0), then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, then)


class Deadline:
    """The end of a wait that begins when this is made and lasts `wait_ms`."""

    __slots__ = ("_clock", "_ends_ns")

    def __init__(self, clock: Clock, wait_ms: int) -> None:
        self._clock = clock
        self._ends_ns = clock.monotonic_ns() + wait_ms * NS_PER_MS

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic_ns() + TIMER_RESOLUTION_NS >= self._ends_ns

    @property
    def left_s(self) -> float:
        """Seconds that are left of it; 0 once it is over."""
        return max(self._ends_ns - self._clock.monotonic_ns(), 0) / NS_PER_S

    def call(self, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once the wait is over."""
        return self._clock.call_after(max(self._ends_ns - self._clock.monotonic_ns(), 0) / NS_PER_MS, then)


class Throttler:
    """Limits the units of work a second by putting the calling thread to sleep, so never for the event loop's thread.

    Source: org.apache.kafka.storage.internals.utils.Throttler.
    """

    LEAD_S = 0.05
    """How far ahead of its rate a thread may get before it sleeps: a shorter sleep costs more than it gives."""

    def __init__(self, per_second: float) -> None:
        self._seconds_each = 1 / per_second
        self._due_s = 0.0

    def __call__(self, count: int) -> None:
        """Returns once `count` more units may be done."""
        now_s = time.monotonic()
        self._due_s = max(self._due_s, now_s) + count * self._seconds_each
        if self._due_s > now_s + self.LEAD_S:
            time.sleep(self._due_s - now_s)
