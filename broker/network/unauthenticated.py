"""Unauthenticated connections of a listener: limited in number and in time.

An unauthenticated connection costs a descriptor and memory, and its client has proven nothing. So there are few of
them, and each has little time, however often it sends a byte; beyond their number, a new connection gets the place of
another (budget.py).

A rejected connection lingers: its peer has a moment to read its last answer. A client that reads the end of a
connection together with the last answer may discard the answer (kafka-python does), and an end while unread bytes wait
resets the connection: the peer's next write then fails before it has read. So the broker waits until the peer closes,
as clients do that have read the reason, or until LINGER_MS is over. It ignores what the peer sends meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from broker.clock import Clock, Timer
from broker.network.budget import Budget
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView

LINGER_MS: Final = 500

TOO_LATE: Final = "the client did not authenticate within {} ms (odradek.authentication.timeout.ms)"
TOO_MANY: Final = "more than {} connections have not authenticated (odradek.unauthenticated.connections.max)"


T = TypeVar("T")


class Deadlines(Generic[T]):
    """A queue of items with deadlines, with one timer. Each deadline is the same time after its item is added, so the
    queue is in order of arrival."""

    __slots__ = ("_clock", "_deadlines_ms", "_expire", "_timer", "_wait_ms")

    def __init__(self, clock: Clock, wait_ms: int, expire: Callable[[T], None]) -> None:
        """Calls `expire` with each item whose deadline has passed, after the item is removed. Each item waits for
        `wait_ms`, 1 or more."""
        self._clock = clock
        self._wait_ms = wait_ms
        self._expire = expire
        self._deadlines_ms: OrderedDict[T, int] = OrderedDict()
        """The deadlines, of the longest waiting item first."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._deadlines_ms)

    def add(self, waiting: T) -> None:
        """Adds an item that isn't in the queue: its time begins."""
        self._deadlines_ms[waiting] = self._clock.monotonic_ms() + self._wait_ms
        if self._timer is None:
            self._arm()

    def discard(self, waiting: T) -> bool:
        """Removes an item from the queue. Returns False if it isn't there."""
        return self._deadlines_ms.pop(waiting, None) is not None

    def pop(self) -> T:
        """Removes and returns the item that has waited longest. Raises KeyError if the queue is empty."""
        waiting, _ = self._deadlines_ms.popitem(last=False)
        return waiting

    def _first_ms(self) -> int:
        return next(iter(self._deadlines_ms.values()))

    def _arm(self) -> None:
        self._timer = self._clock.call_after(max(self._first_ms() - self._clock.monotonic_ms(), 1), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        try:
            while self._deadlines_ms and self._first_ms() <= now_ms:
                self._expire(self.pop())
        finally:  # after an error over one item, the others are handled in the next turn
            if self._deadlines_ms and self._timer is None:
                self._arm()


class UnauthenticatedConnections:
    """The unauthenticated connections of a listener whose clients must authenticate."""

    def __init__(
        self,
        clock: Clock,
        lines: ConnectionLines,
        begin: Callable[[ConnectionView], None],
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
        self._max_request_bytes = max_request_bytes
        self._budget = Budget(most)
        self._waiting: Deadlines[ConnectionView] = Deadlines(clock, timeout_ms, self._too_late)
        self._lingering: Deadlines[ConnectionView] = Deadlines(clock, LINGER_MS, _close_lingering)

    def __len__(self) -> int:
        return len(self._budget) + len(self._lingering)

    def add(self, connection: ConnectionView) -> int:
        """Adds a new connection and returns the maximum length of its requests."""
        self._waiting.add(connection)
        self._budget.add(connection)
        self._begin(connection)
        if len(self) > self._budget.limit:
            self._make_room()
        return self._max_request_bytes

    def _make_room(self) -> None:
        if self._lingering:
            _close_lingering(self._lingering.pop())
        else:
            self._cut_off(self._budget.next_to_close(), TOO_MANY.format(self._budget.limit))

    def linger(self, connection: ConnectionView, reason: str) -> None:
        """Closes a rejected connection after its peer had time to read the reason."""
        if connection.is_ending:
            return
        self._lines.closed(connection, reason)
        self.discard(connection)
        connection.linger()
        connection.transport.resume_reading()  # otherwise the broker doesn't notice that the peer closes
        self._lingering.add(connection)

    def discard(self, connection: ConnectionView) -> None:
        """Removes a connection that has authenticated, or is closed."""
        self._lingering.discard(connection)
        self._waiting.discard(connection)
        self._budget.discard(connection)

    def _too_late(self, connection: ConnectionView) -> None:
        self._cut_off(connection, TOO_LATE.format(self._timeout_ms))

    def _cut_off(self, connection: ConnectionView, reason: str) -> None:
        self.discard(connection)
        self._lines.closed(connection, reason)
        connection.cut_off()


def _close_lingering(connection: ConnectionView) -> None:
    """Closes a connection. A peer that doesn't even read gets no time to read: the connection is no longer counted."""
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()
    else:
        connection.transport.close()
