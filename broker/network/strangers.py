"""Unauthenticated connections of a listener: limited in number and in time.

An unauthenticated connection costs a descriptor and memory, and its client has proven nothing. So there are few of
them, and each has little time, however often it sends a byte; a new connection gets the place of the one that has
waited longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from broker.clock import Clock
from broker.network.connection_lines import ConnectionLines, Told
from broker.network.deadlines import Deadlines
from broker.network.dismissals import Dismissals, Dismissed

TOO_LATE: Final = "the client did not authenticate within {} ms (odradek.authentication.timeout.ms)"
TOO_MANY: Final = "more than {} connections have not authenticated (odradek.unauthenticated.connections.max)"


class Stranger(Dismissed, Told, Protocol):
    """A connection that has not authenticated."""

    @property
    def is_ending(self) -> bool: ...

    def end(self) -> None:
        """Reads and answers nothing more, and leaves the socket open."""

    def cut_off(self) -> None:
        """Closes without waiting for the written bytes to be sent."""


class Strangers:
    """The unauthenticated connections of a listener whose clients must authenticate."""

    def __init__(
        self,
        clock: Clock,
        lines: ConnectionLines,
        begin: Callable[[Stranger], None],
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
        self._waiting: Deadlines[Stranger] = Deadlines(clock, timeout_ms, self._too_late)
        self._addresses: dict[str, OrderedDict[Stranger, None]] = {}
        """The waiting connections of each address, the longest waiting first."""
        self._dismissals = Dismissals(clock)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._dismissals)

    def take_in(self, connection: Stranger) -> int:
        """Adds a new connection and returns the maximum length of its requests."""
        self._waiting.add(connection)
        self._addresses.setdefault(connection.ip, OrderedDict())[connection] = None
        self._begin(connection)
        if len(self._waiting) + len(self._dismissals) > self._most:
            self._make_room()
        return self._max_request_bytes

    def _make_room(self) -> None:
        if self._dismissals:
            self._dismissals.hurry()
            return
        most = max(self._addresses.values(), key=len)
        longest_waiting = next(iter(most))
        self.let_go(longest_waiting)
        self._cut_off(longest_waiting, TOO_MANY.format(self._most))

    def dismiss(self, connection: Stranger, reason: str) -> None:
        """Closes a rejected connection after its peer had time to read the reason."""
        if connection.is_ending:
            return
        self._lines.closed(connection, reason)
        self.let_go(connection)
        connection.end()
        self._dismissals.add(connection)

    def let_go(self, connection: Stranger) -> None:
        """Removes a connection that has authenticated, or is closed."""
        self._dismissals.discard(connection)
        if self._waiting.discard(connection):
            self._forget_address(connection)

    def _forget_address(self, connection: Stranger) -> None:
        of_address = self._addresses[connection.ip]
        del of_address[connection]
        if not of_address:
            del self._addresses[connection.ip]

    def _too_late(self, connection: Stranger) -> None:
        self._forget_address(connection)
        self._cut_off(connection, TOO_LATE.format(self._timeout_ms))

    def _cut_off(self, connection: Stranger, reason: str) -> None:
        self._lines.closed(connection, reason)
        connection.cut_off()
