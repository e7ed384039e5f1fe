"""Connections of a listener that have not authenticated yet: so many, and each for so long.

A stranger costs a descriptor and memory, and has shown nothing. So there are few of them, and they have little time,
however often they send a byte; one that is new is given the place of one that has waited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from broker.clock import Clock
from broker.network.connection_lines import ConnectionLines, Told
from broker.network.deadlines import Deadlines
from broker.network.dismissals import Dismissals, Dismissed

TOO_LATE: Final = "it did not authenticate within {} ms (odradek.authentication.timeout.ms)"
TOO_MANY: Final = "more than {} connections have not authenticated (odradek.unauthenticated.connections.max)"


class Stranger(Dismissed, Told, Protocol):
    """A connection that has not authenticated."""

    @property
    def is_ending(self) -> bool: ...

    def end(self) -> None:
        """Takes and answers nothing more, and leaves its socket open."""

    def cut_off(self) -> None:
        """It has no more time."""


class Strangers:
    """One for each listener that has clients authenticate."""

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
        """`begin` has a new connection authenticate; until it has, its requests are no longer than
        `max_request_bytes`."""
        self._lines = lines
        self._begin = begin
        self._timeout_ms = timeout_ms
        self._most = most
        self._max_request_bytes = max_request_bytes
        self._waiting: Deadlines[Stranger] = Deadlines(clock, timeout_ms, self._too_late)
        self._addresses: dict[str, OrderedDict[Stranger, None]] = {}
        """Those of each address, the longest waiting first."""
        self._dismissals = Dismissals(clock)

    def __len__(self) -> int:
        return len(self._waiting) + len(self._dismissals)

    def take_in(self, connection: Stranger) -> int:
        """Takes in a new connection; returns how long its requests may be."""
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
        """Closes one that has been told why it is refused, once it had the time to read that."""
        if connection.is_ending:
            return
        self._lines.closed(connection, reason)
        self.let_go(connection)
        connection.end()
        self._dismissals.add(connection)

    def let_go(self, connection: Stranger) -> None:
        """It has authenticated, or is gone."""
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
