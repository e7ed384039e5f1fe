"""The clock of `client.clock`, with deadlines on an event loop, and a limit on the rate of threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from client.clock import NS_PER_MS, Clock, Monotonic, SystemClock, Timer, done_by, next_turn, pause

__all__ = [
    "NS_PER_MS",
    "Clock",
    "Deadline",
    "Monotonic",
    "SystemClock",
    "Throttler",
    "Timer",
    "done_by",
    "next_turn",
    "pause",
]

NS_PER_S: Final = 1_000_000_000

TIMER_RESOLUTION_NS: Final = NS_PER_MS // 2
"""Timer resolution: an event loop counts in milliseconds, and may call a timer this much too early."""


class Deadline:
    """The end of a wait that begins when it is created, and takes `wait_ms`."""

    __slots__ = ("_clock", "_ends_ns")

    def __init__(self, clock: Clock, wait_ms: int) -> None:
        self._clock = clock
        self._ends_ns = clock.monotonic_ns() + wait_ms * NS_PER_MS

    @property
    def is_over(self) -> bool:
        return self._clock.monotonic_ns() + TIMER_RESOLUTION_NS >= self._ends_ns

    @property
    def left_s(self) -> float:
        """Returns the remaining seconds; 0 once it is over."""
        return max(self._ends_ns - self._clock.monotonic_ns(), 0) / NS_PER_S

    def call(self, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once the wait is over."""
        return self._clock.call_after(max(self._ends_ns - self._clock.monotonic_ns(), 0) / NS_PER_MS, then)


class Throttler:
    """Limits the work per second by putting the calling thread to sleep. Not for the event loop's thread.

    Source: org.apache.kafka.storage.internals.utils.Throttler.
    """

    LEAD_S = 0.05
    """Time by which a thread may be ahead of its rate before it sleeps, because shorter sleeps cost more than they are
    worth.
    """

    def __init__(self, per_second: float) -> None:
        self._seconds_each = 1 / per_second
        self._due_s = 0.0

    def __call__(self, count: int) -> None:
        """Counts `count` units of work, and returns once they are allowed."""
        now_s = time.monotonic()
        self._due_s = max(self._due_s, now_s) + count * self._seconds_each
        if self._due_s > now_s + self.LEAD_S:
            time.sleep(self._due_s - now_s)
