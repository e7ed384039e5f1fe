"""Unauthenticated connections of a listener: limited in number and in time.

An unauthenticated connection costs a descriptor and memory, and its client has proven nothing. So there are few of
them, and each has little time, however often it sends a byte; a new connection gets the place of the one that has
waited longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from broker.clock import Clock
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView
from broker.network.deadlines import Deadlines
from broker.network.lingering_close import LingeringClose

TOO_LATE: Final = "the client did not authenticate within {} ms (odradek.authentication.timeout.ms)"
TOO_MANY: Final = "more than {} connections have not authenticated (odradek.unauthenticated.connections.max)"


class UnauthenticatedConnections:
    """The unauthenticated connections of a listener whose clients must authenticate."""

    def __init__(
        self,
        clock: Clock,
        lines: ConnectionLines,
        begin: Callable[[ConnectionView], None],
        *,
        timeout_ms: int,
        most: int,
        max_request_bytes: int,
    ) -> None:
        """`begin` starts the authentication of a new connection; until it is authenticated, its requests are at most
        `max_request_bytes` long."""
        self._lines = lines
        self._begin = begin
        self._timeout_ms = timeout_ms
        self._most = most
        self._max_request_bytes = max_request_bytes
        self._waiting: Deadlines[ConnectionView] = Deadlines(clock, timeout_ms, self._too_late)
        self._addresses: dict[str, OrderedDict[ConnectionView, None]] = {}
        """The waiting connections of each address, the longest waiting first."""
        self._lingering = LingeringClose(clock)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._lingering)

    def add(self, connection: ConnectionView) -> int:
        """Adds a new connection and returns the maximum length of its requests."""
        self._waiting.add(connection)
        self._addresses.setdefault(connection.ip, OrderedDict())[connection] = None
        self._begin(connection)
        if len(self._waiting) + len(self._lingering) > self._most:
            self._make_room()
        return self._max_request_bytes

    def _make_room(self) -> None:
        if self._lingering:
            self._lingering.close_first()
            return
        most = max(self._addresses.values(), key=len)
        longest_waiting = next(iter(most))
        self.discard(longest_waiting)
        self._cut_off(longest_waiting, TOO_MANY.format(self._most))

    def linger(self, connection: ConnectionView, reason: str) -> None:
        """Closes a rejected connection after its peer had time to read the reason."""
        if connection.is_ending:
            return
        self._lines.closed(connection, reason)
        self.discard(connection)
        connection.end()
        self._lingering.add(connection)

    def discard(self, connection: ConnectionView) -> None:
        """Removes a connection that has authenticated, or is closed."""
        self._lingering.discard(connection)
        if self._waiting.discard(connection):
            self._forget_address(connection)

    def _forget_address(self, connection: ConnectionView) -> None:
        of_address = self._addresses[connection.ip]
        del of_address[connection]
        if not of_address:
            del self._addresses[connection.ip]

    def _too_late(self, connection: ConnectionView) -> None:
        self._forget_address(connection)
        self._cut_off(connection, TOO_LATE.format(self._timeout_ms))

    def _cut_off(self, connection: ConnectionView, reason: str) -> None:
        self._lines.closed(connection, reason)
        connection.cut_off()
