"""Admits connections up to limits on their number, their number from an address, and their rate, over all listeners.

Connections beyond max.connections, max.connection.creation.rate or the process's limit of open files wait for a place
in the order in which they came. Connections to the inter-broker listener don't wait if clients have another listener:
they don't count against the limits of clients' connections.

Source: kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

from broker.clock import Clock, Timer
from broker.config import BrokerConfig
from broker.config.network import MAX_INT
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView
from broker.network.descriptors import WAITING_CONNECTIONS
from coordinator.rate import Rate

CHECK_MS: Final = 1_000
"""Interval at which waiting connections are checked for a place: the operator may have raised the limits."""


class ConnectionRates:
    """The rates of new connections by address, and the delays that keep them at their limits; None stands for all
    addresses together."""

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


class Admission:
    """Admits the broker's connections and counts them."""

    def __init__(
        self, limits: Callable[[], BrokerConfig], clock: Clock, lines: ConnectionLines, room: int = sys.maxsize
    ) -> None:
        """`limits` returns the configuration in force: the limits may change while the broker runs. `room` is the
        number of connections that the process can open (see descriptors.py)."""
        self._limits = limits
        self._clock = clock
        self._lines = lines
        self._room = room
        self._per_ip: Counter[str] = Counter()
        self._count = 0
        config = limits()
        self._rates = ConnectionRates(config.quota_window_num, config.quota_window_size_seconds * 1000)
        self.waiting: deque[ConnectionView] = deque()
        self._first_is_counted = False
        """True if the first waiting connection is counted in the rate already; it waits until `_not_before_ms` for
        it."""
        self._not_before_ms = 0
        self._delayed: set[ConnectionView] = set()
        """Connections that wait to be closed: the wait slows down an address that connects too often."""
        self._timer: Timer | None = None
        self.limit_of_address: Callable[[str], float | None] | None = None
        """The quota of an address, in connections a second; None for an address without a quota."""

    def admit(self, connection: ConnectionView) -> bool:
        """Counts a new connection and lets it start or wait. Returns False if the caller must close it."""
        limits = self._limits()
        limit = limits.connection_limits.get(connection.ip, limits.max_connections_per_ip)
        if self._per_ip[connection.ip] >= limit:
            return self._reject(connection, f"max.connections.per.ip {limit} is reached")
        rate, delay_ms = self._rate_of(connection.ip), 0
        if rate < MAX_INT:
            delay_ms = self._rates.delay_ms(connection.ip, self._clock.monotonic_ms(), rate)
        is_full = len(self.waiting) + len(self._delayed) >= WAITING_CONNECTIONS
        if delay_ms and is_full:
            return self._reject(connection, _too_often(rate))
        if not delay_ms and not self._place(connection):
            if is_full:
                return self._reject(connection, self._reason())
            connection.wait_for_place()
            self.waiting.append(connection)
            self._check_later()
        elif delay_ms:
            connection.wait_for_place()
            self._delayed.add(connection)
            self._clock.call_at(self._clock.now_ms() + delay_ms, lambda: self._close_delayed(connection, rate))
        else:
            self._count += 1
        self._per_ip[connection.ip] += 1
        return True

    def _rate_of(self, ip: str) -> int:
        """Returns the number of connections that an address may make in a second."""
        rate = self._limits().odradek_connection_creation_rate_per_ip
        quota = None if self.limit_of_address is None else self.limit_of_address(ip)
        return rate if quota is None else min(rate, int(quota))

    def release(self, connection: ConnectionView) -> None:
        """Removes a closed connection from the counts and admits the next waiting connection."""
        self._per_ip[connection.ip] -= 1
        if not self._per_ip[connection.ip]:
            del self._per_ip[connection.ip]
        if connection in self._delayed:
            self._delayed.remove(connection)
        elif connection in self.waiting:
            self._first_is_counted = self._first_is_counted and connection is not self.waiting[0]
            self.waiting.remove(connection)
        else:
            self._count -= 1
        self._admit_waiting()

    def _place(self, connection: ConnectionView) -> bool:
        """Gives a new connection its place. Returns False if it must wait for a place."""
        if self._is_of_brokers(connection):
            return self._count < self._room
        if self.waiting or self._count >= self._places() or self._count_first() > 0:
            return False
        self._first_is_counted = False
        return True

    def _is_of_brokers(self, connection: ConnectionView) -> bool:
        config = self._limits()
        return len(config.bound_listeners) > 1 and connection.listener_name == config.inter_broker_listener

    def _count_first(self) -> int:
        """Counts the first waiting connection in the rate, once, and returns the time that it still waits for the
        rate."""
        now_ms = self._clock.monotonic_ms()
        if not self._first_is_counted:
            self._first_is_counted = True
            limit = self._limits().max_connection_creation_rate
            self._not_before_ms = now_ms if limit >= MAX_INT else now_ms + self._rates.delay_ms(None, now_ms, limit)
        return self._not_before_ms - now_ms

    def _admit_waiting(self) -> None:
        while self.waiting and self._count < self._places() and self._count_first() <= 0:
            self._first_is_counted = False
            self._count += 1
            self.waiting.popleft().admitted()
        if self.waiting:
            self._check_later()

    def _check_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_ms = self._count_first() if self._count < self._places() else CHECK_MS
        self._timer = self._clock.call_at(self._clock.now_ms() + max(wait_ms, 1), self._admit_waiting)

    def _close_delayed(self, connection: ConnectionView, rate: int) -> None:
        if connection in self._delayed:
            self._lines.rejected(connection.ip, connection.peer, _too_often(rate))
            connection.cut_off()

    def _reject(self, connection: ConnectionView, reason: str) -> bool:
        self._lines.rejected(connection.ip, connection.peer, reason)
        return False

    def _places(self) -> int:
        return min(self._limits().max_connections, self._room)

    def _reason(self) -> str:
        limits = self._limits()
        if self._count < self._places():
            return f"max.connection.creation.rate {limits.max_connection_creation_rate} is reached"
        if limits.max_connections <= self._room:
            return f"max.connections {limits.max_connections} is reached"
        return f"{self._room} connections are the most that the limit of open files (ulimit -n) allows"


def _too_often(rate: int) -> str:
    return f"{rate} connections a second are the most that its address may make"
