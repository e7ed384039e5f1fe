"""The rate that is held against a quota, over samples of some seconds, and the wait of who is beyond it.

Source: Kafka's Rate, SampledStat and QuotaUtils.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_WAIT_MS: Final = 0x7FFFFFFF
"""The longest throttle time that an answer has room for; nobody waits longer, however small its quota is."""


class QuotaRate:
    """The sum of what came lately, per second. Until all samples are there, time counts as if they were: a burst at the
    beginning is allowed as much as the windows that it has not used."""

    __slots__ = ("_samples", "_starts_ms", "_sums", "_window_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._starts_ms: deque[int] = deque()
        self._sums: deque[float] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Adds a value to the sample of now."""
        self._forget(now_ms)
        if not self._starts_ms or now_ms - self._starts_ms[-1] >= self._window_ms:
            self._starts_ms.append(now_ms)
            self._sums.append(0.0)
            if len(self._sums) > self._samples:
                self._starts_ms.popleft()
                self._sums.popleft()
        self._sums[-1] += value

    def take_back(self, value: float) -> None:
        """Takes a value back that was recorded last."""
        self._sums[-1] -= value

    def is_idle(self, now_ms: int) -> bool:
        """True when nothing is left to remember."""
        self._forget(now_ms)
        return not self._sums

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Returns for how long nothing may come until the rate is back at its limit; 0 while it is not beyond."""
        if not self._sums:
            return 0
        span_ms = self._span_ms(now_ms)
        rate = sum(self._sums) * 1000 / span_ms
        return round(min((rate - limit) / limit * span_ms, MAX_WAIT_MS)) if rate > limit else 0

    def _span_ms(self, now_ms: int) -> int:
        elapsed_ms = now_ms - self._starts_ms[0]
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, self._window_ms)

    def _forget(self, now_ms: int) -> None:
        while self._starts_ms and now_ms - self._starts_ms[0] >= self._samples * self._window_ms:
            self._starts_ms.popleft()
            self._sums.popleft()
