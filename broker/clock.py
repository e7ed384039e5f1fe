"""The time, in one place: everything else is told what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the broker asks the time of; a simulation gives its own."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as records carry them."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that only grow, for deadlines."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
