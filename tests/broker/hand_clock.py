"""A clock that is moved by hand, with its timers."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from broker.clock import Timer


class HandClock:
    """Time passes by `pass_ms` alone, which calls what is due in the order of its times."""

    def __init__(self) -> None:
        self.time_ms = 0.0
        self._numbers = count()
        self._timers: list[tuple[float, int, Callable[[], None], HandClock.Set]] = []

    class Set:
        is_cancelled = False

        def cancel(self) -> None:
            self.is_cancelled = True

    def now_ms(self) -> int:
        return int(self.time_ms)

    def monotonic_ms(self) -> int:
        return int(self.time_ms)

    def monotonic_ns(self) -> int:
        return int(self.time_ms * 1e6)

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self.call_after(when_ms - self.time_ms, then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        timer = HandClock.Set()
        heapq.heappush(self._timers, (self.time_ms + delay_ms, next(self._numbers), then, timer))
        return timer

    def pass_ms(self, duration_ms: float) -> None:
        end_ms = self.time_ms + duration_ms
        while self._timers and self._timers[0][0] <= end_ms:
            self.time_ms, _, then, timer = heapq.heappop(self._timers)
            if not timer.is_cancelled:
                then()
        self.time_ms = end_ms

    @property
    def timers(self) -> int:
        """How many timers are set."""
        return sum(not timer.is_cancelled for *_, timer in self._timers)
