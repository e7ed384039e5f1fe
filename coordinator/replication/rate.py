"""A rate over a sliding window of samples. Source: SimpleRate and SampledStat of Apache Kafka's metrics."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Sample(NamedTuple):
    """The sum of the counts in a window."""

    start_ms: int
    total: int


class SampledRate:
    """Counts per second over the last `samples` windows, or over the windows so far, at least one."""

    def __init__(self, samples: int, window_ms: int) -> None:
        self._age_ms = samples * window_ms
        self._window_ms = window_ms
        self._samples: deque[Sample] = deque()

    def record(self, count: int, now_ms: int) -> None:
        """Counts an amount now."""
        samples = self._samples
        if samples and now_ms - samples[-1].start_ms < self._window_ms:
            start_ms, total = samples.pop()
            samples.append(Sample(start_ms, total + count))
        else:
            samples.append(Sample(now_ms, count))

    def per_second(self, now_ms: int) -> float:
        """Returns the present rate."""
        samples = self._samples
        while samples and now_ms - samples[0].start_ms >= self._age_ms:
            samples.popleft()
        if not samples:
            return 0.0
        elapsed_ms = max(now_ms - samples[0].start_ms, self._window_ms)
        return sum([sample.total for sample in samples]) * 1000 / elapsed_ms
