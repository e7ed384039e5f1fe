"""Connections that have been told why they are refused, and get a moment to read it.

Who reads the end of a connection together with the last answer may drop that (kafka-python does), and an end over bytes
that came meanwhile resets the connection, so that the peer's next write fails before it has read. So the peer hangs up
first, as clients do that have read why, or has LINGER_MS. What it sends is not looked at.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final, Protocol

from broker.clock import Clock, Timer

LINGER_MS: Final = 500


class Dismissed(Protocol):
    """A connection that has been told, and is closed but for its socket."""

    @property
    def transport(self) -> asyncio.Transport: ...


class Dismissals:
    """Those of a listener."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_ms: OrderedDict[Dismissed, int] = OrderedDict()
        """The longest waiting first."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._ends_ms)

    def add(self, connection: Dismissed) -> None:
        """Has a connection closed once its peer has, or its time is over."""
        connection.transport.resume_reading()  # else nobody learns that its peer hangs up
        self._ends_ms[connection] = self._clock.monotonic_ms() + LINGER_MS
        self._arm()

    def discard(self, connection: Dismissed) -> None:
        """It is gone."""
        self._ends_ms.pop(connection, None)

    def hurry(self) -> None:
        """Closes the one that has waited longest. One that does not even read gets no time to: nobody counts it."""
        connection, _ = self._ends_ms.popitem(last=False)
        if connection.transport.get_write_buffer_size():
            connection.transport.abort()
        else:
            connection.transport.close()

    def _arm(self) -> None:
        if self._timer is None and self._ends_ms:
            wait_ms = next(iter(self._ends_ms.values())) - self._clock.monotonic_ms()
            self._timer = self._clock.call_after(max(wait_ms, 1), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        while self._ends_ms and next(iter(self._ends_ms.values())) <= now_ms:
            self.hurry()
        self._arm()
