"""Lingering close: connections that were sent their last answer, and have a moment to read it.

A client that reads the end of a connection together with the last answer may discard the answer (kafka-python does),
and an end while unread bytes wait resets the connection: the peer's next write then fails before it has read. So the
broker waits until the peer closes, as clients do that have read the reason, or until LINGER_MS is over. It ignores what
the peer sends meanwhile.
"""

from __future__ import annotations

from typing import Final

from broker.clock import Clock
from broker.network.connection_view import ConnectionView
from broker.network.deadlines import Deadlines

LINGER_MS: Final = 500


class LingeringClose:
    """The lingering connections of a listener. A connection that is gone is discarded."""

    def __init__(self, clock: Clock) -> None:
        self._waiting: Deadlines[ConnectionView] = Deadlines(clock, LINGER_MS, _close)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: ConnectionView) -> None:
        """Closes a connection once its peer has closed it, or its time is over."""
        connection.transport.resume_reading()  # otherwise the broker doesn't notice that the peer closes
        self._waiting.add(connection)

    def discard(self, connection: ConnectionView) -> None:
        """Forgets a connection that is closed."""
        self._waiting.discard(connection)

    def close_first(self) -> None:
        """Closes the connection that has waited longest."""
        _close(self._waiting.pop())


def _close(connection: ConnectionView) -> None:
    """Closes a connection. A peer that doesn't even read gets no time to read: the connection is no longer counted."""
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()
    else:
        connection.transport.close()
