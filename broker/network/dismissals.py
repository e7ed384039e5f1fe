"""Connections that have been told why they are refused, and get a moment to read it.

Who reads the end of a connection together with the last answer may drop that (kafka-python does), and an end over bytes
that came meanwhile resets the connection, so that the peer's next write fails before it has read. So the peer hangs up
first, as clients do that have read why, or has LINGER_MS. What it sends is not looked at.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from broker.clock import Clock
from broker.network.deadlines import Deadlines

LINGER_MS: Final = 500


class Dismissed(Protocol):
    """A connection that has been told, and is closed but for its socket."""

    @property
    def transport(self) -> asyncio.Transport: ...


class Dismissals(Deadlines[Dismissed]):
    """Those of a listener. One that is gone is discarded."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, LINGER_MS, _close)

    def add(self, waiting: Dismissed) -> None:
        """Has a connection closed once its peer has, or its time is over."""
        waiting.transport.resume_reading()  # else nobody learns that its peer hangs up
        super().add(waiting)

    def hurry(self) -> None:
        """Closes the one that has waited longest."""
        _close(self.pop())


def _close(connection: Dismissed) -> None:
    """Closes one. One that does not even read gets no time to: nobody counts it any more."""
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()
    else:
        connection.transport.close()
