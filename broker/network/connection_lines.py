"""Logs connections that are rejected or closed, and requests over which the broker fails.

Bugs of the broker, which have a stack trace, have a log limiter of their own, so that other lines don't suppress them.
"""

from __future__ import annotations

from typing import Final

from broker.logging import get_logger
from broker.network.connection_view import ConnectionView
from broker.request.context import ClientConnection
from broker.request.log_limiter import LogLimiter
from protocol.errors import ProtocolError

logger: Final = get_logger("broker.network.connection")


class ConnectionLines:
    """The log lines about connections of all listeners."""

    def __init__(self, faults: LogLimiter) -> None:
        """`faults` limits the lines about bugs of the broker, in every part of it."""
        self._of_peers = LogLimiter()
        self._faults = faults

    def rejected(self, ip: str, peer: str, reason: str) -> None:
        """Logs that a connection is rejected."""
        if self._of_peers.allows(ip):
            logger.warning("connection refused", peer=peer, reason=reason)

    def closed(self, connection: ConnectionView, reason: str) -> None:
        """Logs that a connection is closed because its peer failed to do something."""
        if self._of_peers.allows(connection.ip):
            logger.warning("connection closed", peer=connection.peer, reason=reason)

    def failed(self, connection: ConnectionView, error: BaseException) -> None:
        """Logs that a connection is closed because of what its peer sent, or because of a bug of the broker."""
        if not isinstance(error, ProtocolError):
            if self._faults.allows(connection.ip):
                logger.error("connection closed", peer=connection.peer, reason=repr(error), exc_info=error)
        elif self._of_peers.allows(connection.ip):
            logger.warning("connection closed", peer=connection.peer, reason=error.message, offset=error.offset)

    def lost(self, connection: ConnectionView, error: Exception | None) -> None:
        """Logs that a connection is closed by an error that its peer didn't cause, such as a write that the system
        rejects."""
        if error is None or isinstance(error, (ConnectionError, TimeoutError)):
            return
        if self._of_peers.allows(connection.ip):
            logger.warning("connection closed", peer=connection.peer, reason=repr(error))

    def begin_interval(self) -> None:
        """Begins an interval, and logs the number of lines that were suppressed in the last interval."""
        if of_peers := self._of_peers.begin_interval():
            logger.warning("connections refused or closed without a line", **of_peers)
        if faults := self._faults.begin_interval():
            logger.error("requests failed without a trace", **faults)


def tell_closed(connection: ClientConnection) -> None:
    """Calls the connection's `on_close` callbacks."""
    on_close, connection.on_close = connection.on_close, []
    for tell in on_close:
        try:
            tell(connection)
        except Exception as error:  # the other callbacks still run
            logger.error("a callback for a closed connection failed", peer=connection.peer, exc_info=error)
