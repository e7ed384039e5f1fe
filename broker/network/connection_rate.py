"""How many connections are made in a second, and how long the next one has to wait.

Measured as Apache Kafka measures it, over so many windows of so many seconds: who made none for a while may make a
window's worth for each of them at once. Source: org.apache.kafka.common.metrics.stats.Rate, QuotaUtils.
"""

from __future__ import annotations

from collections import OrderedDict, deque


class ConnectionRate:
    """Connections of the last seconds, counted by the window."""

    __slots__ = ("_counts", "_starts_ms", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        """quota.window.num and quota.window.size.seconds."""
        self._windows = windows
        self._window_ms = window_ms
        self._starts_ms: deque[int] = deque()
        self._counts: deque[int] = deque()

    def delay_ms(self, now_ms: int, limit: int) -> int:
        """Notes a connection; how long it has to wait for there to be no more than `limit` a second: a window at most,
        since nobody waits for long to be told nothing."""
        self._forget(now_ms)
        if not self._starts_ms or now_ms - self._starts_ms[-1] >= self._window_ms:
            self._starts_ms.append(now_ms)
            self._counts.append(0)
        self._counts[-1] += 1
        return self._owed_ms(now_ms, limit)

    def take_back(self) -> None:
        """The connection that was noted last is not made after all."""
        self._counts[-1] -= 1

    def is_idle(self, now_ms: int) -> bool:
        """True when nothing is left to remember."""
        self._forget(now_ms)
        return not self._starts_ms

    def _forget(self, now_ms: int) -> None:
        while self._starts_ms and now_ms - self._starts_ms[0] >= self._windows * self._window_ms:
            self._starts_ms.popleft()
            self._counts.popleft()

    def _owed_ms(self, now_ms: int, limit: int) -> int:
        measured_ms = now_ms - self._starts_ms[0]
        least_windows = self._windows - 1
        measured_ms += max(least_windows - measured_ms // self._window_ms, 0) * self._window_ms
        allowed = limit * measured_ms / 1000
        count = sum(self._counts)
        if count <= allowed:
            return 0
        return self._window_ms if not limit else min(round((count - allowed) * 1000 / limit), self._window_ms)


class RatesByAddress:
    """A rate for each address that has made connections lately."""

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._rates: OrderedDict[str, ConnectionRate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rates)

    def delay_ms(self, ip: str, now_ms: int, limit: int) -> int:
        """Notes a connection of an address; one that would be too many is not made, and not counted."""
        rate = self._rates.get(ip)
        if rate is None:
            rate = self._rates[ip] = ConnectionRate(self._windows, self._window_ms)
        self._rates.move_to_end(ip)
        delay_ms = rate.delay_ms(now_ms, limit)
        if delay_ms:
            rate.take_back()
        self._forget(now_ms)
        return delay_ms

    def _forget(self, now_ms: int) -> None:
        """Those that made none for long, which come first."""
        while self._rates:
            ip = next(iter(self._rates))
            if not self._rates[ip].is_idle(now_ms):
                return
            del self._rates[ip]
