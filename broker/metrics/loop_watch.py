"""Measures the load of the event loop, and the delay of its timers."""

from __future__ import annotations

import resource
from typing import Final

from broker.clock import NS_PER_MS, Clock, Timer
from broker.logging import get_logger

INTERVAL_MS: Final = 100
LATENESSES: Final = 600
"""Number of remembered delays, as many as are measured in a minute."""

NS_PER_S: Final = 1_000_000_000

HELD_UP_MS: Final = 1_000
"""Minimum length of a logged pause of the event loop, because clients have to wait during it."""

logger = get_logger(__name__)


class LoopWatch:
    """Measures the event loop ten times a second, from `start` to `stop`. Call it only in the event loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        self._due_ns = 0
        self._latenesses: list[float] = []
        self._position = 0
        self.worst_ms = 0.0
        """The longest delay since the start."""
        self._at_look = (clock.monotonic_ns(), busy_ns())
        self._at_start = self._at_look

    def start(self) -> None:
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        self._due_ns = self._clock.monotonic_ns() + INTERVAL_MS * NS_PER_MS
        self._timer = self._clock.call_after(INTERVAL_MS, self._look)

    def _look(self) -> None:
        late_ms = max(self._clock.monotonic_ns() - self._due_ns, 0) / NS_PER_MS
        self.worst_ms = max(self.worst_ms, late_ms)
        if late_ms >= HELD_UP_MS:
            logger.warning("the event loop was blocked", late_ms=round(late_ms))
        if len(self._latenesses) < LATENESSES:
            self._latenesses.append(late_ms)
        else:
            self._latenesses[self._position] = late_ms
            self._position = (self._position + 1) % LATENESSES
        self._arm()

    def latenesses_ms(self) -> list[float]:
        """Returns the delays of timers in the last minute, sorted."""
        return sorted(self._latenesses)

    def idle_share(self) -> float:
        """Returns the share of the time since the last call in which the loop's thread was idle, from 0 to 1."""
        now = (self._clock.monotonic_ns(), busy_ns())
        before = self._at_look
        if now[0] - before[0] < NS_PER_S // 2:
            before = self._at_start
        else:
            self._at_look = now
        return max(0.0, min(1.0, 1 - (now[1] - before[1]) / max(now[0] - before[0], 1)))


def busy_ns() -> int:
    """Returns the processor time of the calling thread since its start."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return int((usage.ru_utime + usage.ru_stime) * NS_PER_S)
