"""Which connections are taken: so many in all, so many of one address, so many in a second, whatever listener they
come by.

Those beyond max.connections, beyond max.connection.creation.rate, or beyond what the process may have open, wait for a
place in the order in which they came. What comes by the listener of the brokers among themselves does not, if clients
have another: it is not counted against the limits of clients' connections.
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
"""How often it is looked whether there is a place for those who wait: the limits may have been raised."""


class Entrant(Protocol):
    """A connection that asks to be admitted."""

    @property
    def ip(self) -> str: ...

    @property
    def peer(self) -> str: ...

    @property
    def listener_name(self) -> str: ...

    def hold(self) -> None:
        """It waits for a place."""

    def go_on(self) -> None:
        """It has its place."""

    def cut_off(self) -> None:
        """It gets none."""


class Admission:
    """The connections of a broker, counted."""

    def __init__(
        self, limits: Callable[[], BrokerConfig], clock: Clock, lines: ConnectionLines, room: int = sys.maxsize
    ) -> None:
        """`limits` is the configuration in force: its limits may change while the broker runs. There is `room` for so
        many connections (see descriptors.py)."""
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
        """The first of them counts in the rate, and waits until `_not_before_ms` for that."""
        self._not_before_ms = 0
        self._turned_away: set[Entrant] = set()
        """Those that wait to be closed: an address that makes too many is slowed down by it."""
        self._timer: Timer | None = None
        self.limit_of_address: Callable[[str], float | None] | None = None
        """The quota of an address, in connections a second; None where no address has one."""

    def admit(self, connection: Entrant) -> bool:
        """Counts a new connection in, lets it wait, or says False: it must be closed."""
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
        """Returns how many connections an address may make in a second."""
        rate = self._limits().odradek_connection_creation_rate_per_ip
        quota = None if self.limit_of_address is None else self.limit_of_address(ip)
        return rate if quota is None else min(rate, int(quota))

    def release(self, connection: Entrant) -> None:
        """Counts a closed connection out and lets the next waiting one in."""
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
        """How long the first that waits has to, for the rate's sake; it is counted once."""
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
        return f"{self._room} connections are all that the limit of open files (ulimit -n) has room for"


def _too_often(rate: int) -> str:
    return f"{rate} connections a second are all that its address may make"
