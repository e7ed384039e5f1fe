"""The time, in one place: everything else is told what time it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """An alarm that can be taken back."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """What the broker asks the time of; a simulation gives its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as records carry them."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that only grow, for deadlines."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds that only grow, for what a request takes."""
        ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once `now_ms` has come to `when_ms`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(max(when_ms - self.now_ms(), 0) / 1000, then)


class Pace:
    """Holds a thread back so that it does not do more than so many units a second. For threads of their own."""

    LEAD_S = 0.05
    """How far ahead of its pace it may get before it is held: sleeping for less costs more than it gives."""

    def __init__(self, per_second: float) -> None:
        self._seconds_each = 1 / per_second
        self._due_s = 0.0

    def __call__(self, count: int) -> None:
        """Returns when more than `count` may be done."""
        now_s = time.monotonic()
        self._due_s = max(self._due_s, now_s) + count * self._seconds_each
        if self._due_s > now_s + self.LEAD_S:
            time.sleep(self._due_s - now_s)
