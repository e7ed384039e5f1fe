"""Which connections are taken: so many in all, and so many of one address, whatever listener they come by.

Source: kafka.network.ConnectionQuotas.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from broker.config import BrokerConfig
from broker.logging import get_logger
from broker.network.descriptors import WAITING_CONNECTIONS

log = get_logger("broker.network.listener")


class Entrant(Protocol):
    """A connection that asks to be admitted."""

    @property
    def ip(self) -> str: ...

    @property
    def peer(self) -> str: ...

    def hold(self) -> None:
        """It waits for a place."""

    def go_on(self) -> None:
        """It has its place."""


class Admission:
    """The connections of a broker, counted; those beyond max.connections, or beyond what the process may have open,
    wait for a place."""

    def __init__(self, limits: Callable[[], BrokerConfig], room: int = sys.maxsize) -> None:
        """`limits` is the configuration in force: its limits may change while the broker runs. There is `room` for so
        many connections (see descriptors.py)."""
        self._limits = limits
        self._room = room
        self._per_ip: Counter[str] = Counter()
        self._count = 0
        self.waiting: deque[Entrant] = deque()

    def admit(self, connection: Entrant) -> bool:
        """Counts a new connection in, lets it wait, or says False: it must be closed."""
        limits = self._limits()
        limit = limits.connection_limits.get(connection.ip, limits.max_connections_per_ip)
        if self._per_ip[connection.ip] >= limit:
            return refuse(connection, f"max.connections.per.ip {limit} is reached")
        is_full = self._count >= self._places()
        if is_full and len(self.waiting) >= WAITING_CONNECTIONS:
            return refuse(connection, self._reason())
        self._per_ip[connection.ip] += 1
        if is_full:
            self.waiting.append(connection)
            connection.hold()
        else:
            self._count += 1
        return True

    def release(self, connection: Entrant) -> None:
        """Counts a closed connection out and lets the next waiting one in."""
        self._per_ip[connection.ip] -= 1
        if not self._per_ip[connection.ip]:
            del self._per_ip[connection.ip]
        if connection in self.waiting:
            self.waiting.remove(connection)
        else:
            self._count -= 1
        while self.waiting and self._count < self._places():
            self._count += 1
            self.waiting.popleft().go_on()

    def _places(self) -> int:
        return min(self._limits().max_connections, self._room)

    def _reason(self) -> str:
        configured = self._limits().max_connections
        if configured <= self._room:
            return f"max.connections {configured} is reached"
        return f"{self._room} connections are all that the limit of open files (ulimit -n) has room for"


def refuse(connection: Entrant, reason: str) -> bool:
    log.warning("connection refused", peer=connection.peer, reason=reason)
    return False
