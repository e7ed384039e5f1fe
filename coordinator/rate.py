"""A rate over sample windows, and the time for which a client beyond its quota is throttled.

Source: SampledStat, Rate, SimpleRate and QuotaUtils of Apache Kafka.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_WAIT_MS: Final = 0x7FFFFFFF
"""The longest throttle time that a response has room for; no client waits longer, however small its quota is."""


class Rate:
    """The sum of the amounts in the last `samples` windows, per second.

    Time counts as if `least_windows` windows, the present one included, had begun already. By default these are all
    windows, as in Kafka's Rate: a client without requests for some time may make as many at once as its quota allows in
    that time. With 1, as in Kafka's SimpleRate, only the present window counts as a whole one.
    """

    __slots__ = ("_age_ms", "_full_windows", "_starts_ms", "_sums", "_window_ms")

    def __init__(self, samples: int, window_ms: int, least_windows: int | None = None) -> None:
        self._age_ms = samples * window_ms
        self._window_ms = window_ms
        self._full_windows = (samples if least_windows is None else least_windows) - 1
        self._starts_ms: deque[int] = deque()
        self._sums: deque[float] = deque()

    def record(self, amount: float, now_ms: int) -> None:
        """Adds an amount to the present window."""
        self._forget(now_ms)
        if not self._starts_ms or now_ms - self._starts_ms[-1] >= self._window_ms:
            self._starts_ms.append(now_ms)
            self._sums.append(0)
        self._sums[-1] += amount

    def take_back(self, amount: float) -> None:
        """Removes an amount that was just recorded."""
        self._sums[-1] -= amount

    def is_idle(self, now_ms: int) -> bool:
        """True if no window has an amount."""
        self._forget(now_ms)
        return not self._sums

    def per_second(self, now_ms: int) -> float:
        """Returns the present rate."""
        self._forget(now_ms)
        return sum(self._sums) * 1000 / self._span_ms(now_ms) if self._sums else 0.0

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Returns the time until the rate is back at `limit` if nothing is recorded meanwhile; 0 for a rate that isn't
        above it."""
        if not self._sums:
            return 0
        excess = sum(self._sums) * 1000 - limit * self._span_ms(now_ms)
        if excess <= 0:
            return 0
        return round(min(excess / limit, MAX_WAIT_MS)) if limit else MAX_WAIT_MS

    def _span_ms(self, now_ms: int) -> int:
        elapsed_ms = now_ms - self._starts_ms[0]
        missing = max(self._full_windows - elapsed_ms // self._window_ms, 0)
        return max(elapsed_ms + missing * self._window_ms, self._window_ms)

    def _forget(self, now_ms: int) -> None:
        while self._starts_ms and now_ms - self._starts_ms[0] >= self._age_ms:
            self._starts_ms.popleft()
            self._sums.popleft()
