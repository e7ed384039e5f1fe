"""Lingering close: connections that have their last answer, and a moment to read it.

A client that reads the end of a connection together with the last answer may discard the answer (kafka-python does),
and an end while unread bytes wait resets the connection: the peer's next write then fails before it has read. So the
broker waits until the peer closes, as clients do that have read the reason, or until LINGER_MS is over. It ignores what
the peer sends meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from broker.clock import Clock
from broker.network.deadlines import Deadlines

LINGER_MS: Final = 500


class Dismissed(Protocol):
    """A connection that has its last answer, and is closed but for its socket."""

    @property
    def transport(self) -> asyncio.Transport: ...


class Dismissals(Deadlines[Dismissed]):
    """The lingering connections of a listener. A connection that is gone is discarded."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, LINGER_MS, _close)

    def add(self, waiting: Dismissed) -> None:
        """Closes a connection once its peer has closed it, or its time is over."""
        waiting.transport.resume_reading()  # otherwise the broker doesn't notice that the peer closes
        super().add(waiting)

    def hurry(self) -> None:
        """Closes the connection that has waited longest."""
        _close(self.pop())


def _close(connection: Dismissed) -> None:
    """Closes a connection. A peer that doesn't even read gets no time to read: the connection is no longer counted."""
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()
    else:
        connection.transport.close()
