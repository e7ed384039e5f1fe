"""Measures the time to send the answers of timed requests: until the kernel has their last byte.

An answer is written into the buffer of its transport, which is empty a turn later unless the peer doesn't read. Then it
is checked after pauses that double, so that the measured time is at most double. Source: ResponseSendTimeMs of
kafka.network.RequestMetrics.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker.clock import Clock
from broker.exchange.context import ClientConnection, Context
from broker.exchange.request_times import ApiTimes

FIRST_PAUSE_MS: Final = 1
LAST_PAUSE_MS: Final = 8_192
"""No further check is made for a peer that reads nothing for this long: all pauses before are as long together."""


class AnswerSending:
    """Follows answers until they are sent; a subscriber of timed requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def note(self, context: Context, times: ApiTimes, place: int, answered_ns: int) -> None:
        """Follows an answer that will be written in this turn, and sent at its end."""
        loop = asyncio.get_running_loop()
        look = Look(self._clock, context.connection, times, place, answered_ns)
        loop.call_soon(lambda: loop.call_soon(look))


class Look:
    """An answer that is being sent; called for each check."""

    __slots__ = ("_answered_ns", "_clock", "_connection", "_pause_ms", "_place", "_times")

    def __init__(
        self, clock: Clock, connection: ClientConnection, times: ApiTimes, place: int, answered_ns: int
    ) -> None:
        self._clock = clock
        self._connection = connection
        self._times = times
        self._place = place
        self._answered_ns = answered_ns
        self._pause_ms = FIRST_PAUSE_MS

    def __call__(self) -> None:
        self._times.send.put(self._place, self._clock.monotonic_ns() - self._answered_ns)
        if unsent_bytes(self._connection) and self._pause_ms < LAST_PAUSE_MS:
            self._clock.call_after(self._pause_ms, self)
            self._pause_ms *= 2


def unsent_bytes(connection: ClientConnection) -> int:
    """Returns the bytes that the kernel has not accepted. A connection that stands for another broker's client has no
    socket here."""
    transport: asyncio.Transport | None = getattr(connection, "transport", None)
    return 0 if transport is None or connection.closed else transport.get_write_buffer_size()
