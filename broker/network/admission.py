"""Admits connections up to limits on their number, their number from an address, and their rate, over all listeners.

Connections beyond max.connections, max.connection.creation.rate or the process's limit of open files wait for a place
in the order in which they came. Connections to the inter-broker listener don't wait if clients have another listener:
they don't count against the limits of clients' connections.

Source: kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, Protocol

from broker.clock import Clock, Timer
from broker.config import BrokerConfig
from broker.config.network import MAX_INT
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_rate import ConnectionRate, RatesByAddress
from broker.network.descriptors import WAITING_CONNECTIONS

LOOK_AGAIN_MS: Final = 1_000
"""Interval at which waiting connections are checked for a place: the operator may have raised the limits."""


class Entrant(Protocol):
    """A connection that asks to be admitted."""

    @property
    def ip(self) -> str: ...

    @property
    def peer(self) -> str: ...

    @property
    def listener_name(self) -> str: ...

    def hold(self) -> None:
        """Makes the connection wait for a place."""

    def go_on(self) -> None:
        """Starts the connection: it has its place."""

    def cut_off(self) -> None:
        """Closes the connection without a place."""


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
        window_ms = config.quota_window_size_seconds * 1000
        self._rate = ConnectionRate(config.quota_window_num, window_ms)
        self._rates = RatesByAddress(config.quota_window_num, window_ms)
        self.waiting: deque[Entrant] = deque()
        self._first_is_noted = False
        """True if the first waiting connection is counted in the rate already; it waits until `_not_before_ms` for
        it."""
        self._not_before_ms = 0
        self._turned_away: set[Entrant] = set()
        """Connections that wait to be closed: the wait slows down an address that connects too often."""
        self._timer: Timer | None = None
        self.limit_of_address: Callable[[str], float | None] | None = None
        """The quota of an address, in connections a second; None for an address without a quota."""

    def admit(self, connection: Entrant) -> bool:
        """Counts a new connection and lets it start or wait. Returns False if the caller must close it."""
        limits = self._limits()
        limit = limits.connection_limits.get(connection.ip, limits.max_connections_per_ip)
        if self._per_ip[connection.ip] >= limit:
            return self._refuse(connection, f"max.connections.per.ip {limit} is reached")
        rate, delay_ms = self._rate_of(connection.ip), 0
        if rate < MAX_INT:
            delay_ms = self._rates.delay_ms(connection.ip, self._clock.monotonic_ms(), rate)
        is_full = len(self.waiting) + len(self._turned_away) >= WAITING_CONNECTIONS
        if delay_ms and is_full:
            return self._refuse(connection, _too_often(rate))
        if not delay_ms and not self._has_place(connection):
            if is_full:
                return self._refuse(connection, self._reason())
            connection.hold()
            self.waiting.append(connection)
            self._look_again()
        elif delay_ms:
            connection.hold()
            self._turned_away.add(connection)
            self._clock.call_at(self._clock.now_ms() + delay_ms, lambda: self._turn_away(connection, rate))
        else:
            self._count += 1
        self._per_ip[connection.ip] += 1
        return True

    def _rate_of(self, ip: str) -> int:
        """Returns the number of connections that an address may make in a second."""
        rate = self._limits().odradek_connection_creation_rate_per_ip
        quota = None if self.limit_of_address is None else self.limit_of_address(ip)
        return rate if quota is None else min(rate, int(quota))

    def release(self, connection: Entrant) -> None:
        """Removes a closed connection from the counts and admits the next waiting connection."""
        self._per_ip[connection.ip] -= 1
        if not self._per_ip[connection.ip]:
            del self._per_ip[connection.ip]
        if connection in self._turned_away:
            self._turned_away.remove(connection)
        elif connection in self.waiting:
            self._first_is_noted = self._first_is_noted and connection is not self.waiting[0]
            self.waiting.remove(connection)
        else:
            self._count -= 1
        self._let_in()

    def _has_place(self, connection: Entrant) -> bool:
        if self._is_of_brokers(connection):
            return self._count < self._room
        if self.waiting or self._count >= self._places() or self._wait_ms() > 0:
            return False
        self._first_is_noted = False
        return True

    def _is_of_brokers(self, connection: Entrant) -> bool:
        config = self._limits()
        return len(config.bound_listeners) > 1 and connection.listener_name == config.inter_broker_listener

    def _wait_ms(self) -> int:
        """Returns the time that the first waiting connection still waits for the rate; the connection is counted
        once."""
        now_ms = self._clock.monotonic_ms()
        if not self._first_is_noted:
            self._first_is_noted = True
            limit = self._limits().max_connection_creation_rate
            self._not_before_ms = now_ms if limit >= MAX_INT else now_ms + self._rate.delay_ms(now_ms, limit)
        return self._not_before_ms - now_ms

    def _let_in(self) -> None:
        while self.waiting and self._count < self._places() and self._wait_ms() <= 0:
            self._first_is_noted = False
            self._count += 1
            self.waiting.popleft().go_on()
        if self.waiting:
            self._look_again()

    def _look_again(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_ms = self._wait_ms() if self._count < self._places() else LOOK_AGAIN_MS
        self._timer = self._clock.call_at(self._clock.now_ms() + max(wait_ms, 1), self._let_in)

    def _turn_away(self, connection: Entrant, rate: int) -> None:
        if connection in self._turned_away:
            self._lines.turned_away(connection, _too_often(rate))
            connection.cut_off()

    def _refuse(self, connection: Entrant, reason: str) -> bool:
        self._lines.turned_away(connection, reason)
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
