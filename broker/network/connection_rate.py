"""Measures connections a second and the delay of the next connection.

The rate is measured as in Apache Kafka, over a number of windows: a client without connections for some windows may
make as many as these windows allow at once. Source: org.apache.kafka.common.metrics.stats.Rate, QuotaUtils.
"""

from __future__ import annotations

from collections import OrderedDict, deque


class ConnectionRate:
    """Connections of the last seconds, counted per window."""

    __slots__ = ("_counts", "_starts_ms", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        """`windows` is quota.window.num, `window_ms` quota.window.size.seconds."""
        self._windows = windows
        self._window_ms = window_ms
        self._starts_ms: deque[int] = deque()
        self._counts: deque[int] = deque()

    def delay_ms(self, now_ms: int, limit: int) -> int:
        """Counts a connection and returns its delay, which keeps the rate at `limit` a second. The delay is a window at
        most: no connection should wait long only to be closed."""
        self._forget(now_ms)
        if not self._starts_ms or now_ms - self._starts_ms[-1] >= self._window_ms:
            self._starts_ms.append(now_ms)
            self._counts.append(0)
        self._counts[-1] += 1
        return self._owed_ms(now_ms, limit)

    def take_back(self) -> None:
        """Removes the last counted connection: it isn't made."""
        self._counts[-1] -= 1

    def is_idle(self, now_ms: int) -> bool:
        """True if no window has connections."""
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
        """Counts a connection of an address and returns its delay. A connection with a delay is rejected and isn't
        counted."""
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
        """Removes the addresses without recent connections, which come first."""
        while self._rates:
            ip = next(iter(self._rates))
            if not self._rates[ip].is_idle(now_ms):
                return
            del self._rates[ip]
