"""Measures the time to send the answers of timed requests, until the kernel has their last byte.

An answer is written into the buffer of its transport, which is empty one turn later if the peer reads. If it isn't, it
is checked again after pauses that double, so the measured time is at most twice the real time.

Source: ResponseSendTimeMs of kafka.network.RequestMetrics.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker.clock import Clock
from broker.request.context import ClientConnection, Context
from broker.request.request_times import ApiTimes
from protocol.backoff import Backoff

PAUSES: Final = Backoff(initial_ms=1, max_ms=4_096)
MOST_PAUSES: Final = 13
"""No further check is made after these pauses: the peer has read nothing for eight seconds."""


class AnswerSending:
    """Observes answers until they are sent. A subscriber of timed requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def note(self, context: Context, times: ApiTimes, place: int, answered_ns: int) -> None:
        """Observes an answer that is written in this turn of the event loop, and sent at its end."""
        loop = asyncio.get_running_loop()
        look = Look(self._clock, context.connection, times, place, answered_ns)
        loop.call_soon(lambda: loop.call_soon(look))


class Look:
    """An answer that is being sent; a call checks it."""

    __slots__ = ("_answered_ns", "_clock", "_connection", "_pauses", "_place", "_times")

    def __init__(
        self, clock: Clock, connection: ClientConnection, times: ApiTimes, place: int, answered_ns: int
    ) -> None:
        self._clock = clock
        self._connection = connection
        self._times = times
        self._place = place
        self._answered_ns = answered_ns
        self._pauses = 0

    def __call__(self) -> None:
        self._times.send.put(self._place, self._clock.monotonic_ns() - self._answered_ns)
        if unsent_bytes(self._connection) and self._pauses < MOST_PAUSES:
            self._pauses += 1
            self._clock.call_after(PAUSES.delay_ms(self._pauses), self)


def unsent_bytes(connection: ClientConnection) -> int:
    """Returns the bytes that the kernel has not accepted yet; 0 for a forwarded request, whose connection has no socket
    here.
    """
    transport: asyncio.Transport | None = getattr(connection, "transport", None)
    return 0 if transport is None or connection.closed else transport.get_write_buffer_size()
