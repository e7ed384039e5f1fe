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

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once `now_ms` has come to `when_ms`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(max(when_ms - self.now_ms(), 0) / 1000, then)
