"""Logs connections that are refused or closed, and requests over which the broker fails.

What is a bug of ours, with its trace, counts for itself, so that no other lines keep it out of the log.
"""

from __future__ import annotations

from typing import Final, Protocol

from broker.exchange.context import ClientConnection
from broker.exchange.log_limiter import LogLimiter
from broker.logging import get_logger
from protocol.errors import ProtocolError

log: Final = get_logger("broker.network.connection")


class Told(Protocol):
    """A connection of which something is told."""

    @property
    def ip(self) -> str: ...

    @property
    def peer(self) -> str: ...


class ConnectionLines:
    """One for all listeners of a broker."""

    def __init__(self, faults: LogLimiter) -> None:
        """`faults` are those of bugs of ours, wherever they show."""
        self._of_peers = LogLimiter()
        self._faults = faults

    def turned_away(self, connection: Told, reason: str) -> None:
        """A connection is not taken."""
        if self._of_peers.allows(connection.ip):
            log.warning("connection refused", peer=connection.peer, reason=reason)

    def closed(self, connection: Told, reason: str) -> None:
        """A connection is closed for what its peer does not do."""
        if self._of_peers.allows(connection.ip):
            log.warning("connection closed", peer=connection.peer, reason=reason)

    def failed(self, connection: Told, error: BaseException) -> None:
        """A connection is closed over what its peer sent, or over a bug of ours."""
        if not isinstance(error, ProtocolError):
            if self._faults.allows(connection.ip):
                log.error("connection closed", peer=connection.peer, reason=repr(error), exc_info=error)
        elif self._of_peers.allows(connection.ip):
            log.warning("connection closed", peer=connection.peer, reason=error.message, offset=error.offset)

    def lost(self, connection: Told, error: Exception | None) -> None:
        """A connection is closed by an error that is not its peer's doing, such as a write that the system refuses."""
        if error is None or isinstance(error, (ConnectionError, TimeoutError)):
            return
        if self._of_peers.allows(connection.ip):
            log.warning("connection closed", peer=connection.peer, reason=repr(error))

    def begin_interval(self) -> None:
        """Begins an interval, and logs how many lines were suppressed in the last one."""
        if of_peers := self._of_peers.begin_interval():
            log.warning("connections refused or closed without a line", **of_peers)
        if faults := self._faults.begin_interval():
            log.error("requests failed without a trace", **faults)


def tell_closed(connection: ClientConnection) -> None:
    """Tells all who want to know that a connection is closed."""
    on_close, connection.on_close = connection.on_close, []
    for tell in on_close:
        try:
            tell(connection)
        except Exception as error:  # the others want to know as well
            log.error("the end of a connection was not dealt with", peer=connection.peer, exc_info=error)
