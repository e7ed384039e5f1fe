"""The rates of new connections, of each address and of all together, and the delays that keep them at their limits.

Source: kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

from collections import OrderedDict

from coordinator.rate import Rate


class ConnectionRates:
    """The rates by address; None stands for all addresses together."""

    def __init__(self, windows: int, window_ms: int) -> None:
        """`windows` is quota.window.num, `window_ms` quota.window.size.seconds."""
        self._windows = windows
        self._window_ms = window_ms
        self._rates: OrderedDict[str | None, Rate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rates)

    def delay_ms(self, address: str | None, now_ms: int, limit: int) -> int:
        """Counts a connection and returns its delay, which keeps the rate at `limit` a second. The delay is a window at
        most: no connection should wait long only to be closed. A delayed connection of an address is rejected, and so
        it isn't counted."""
        rate = self._rates.get(address)
        if rate is None:
            rate = self._rates[address] = Rate(self._windows, self._window_ms)
        self._rates.move_to_end(address)
        rate.record(1, now_ms)
        delay_ms = min(rate.throttle_ms(limit, now_ms), self._window_ms)
        if delay_ms and address is not None:
            rate.take_back(1)
        self._forget(now_ms)
        return delay_ms

    def _forget(self, now_ms: int) -> None:
        """Removes the rates without recent connections, which come first."""
        while self._rates:
            address = next(iter(self._rates))
            if not self._rates[address].is_idle(now_ms):
                return
            del self._rates[address]
