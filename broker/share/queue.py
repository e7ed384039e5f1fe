"""The fetches that wait for records of a share partition, in order of arrival.

When acknowledgements allow more records in flight, fetches are woken one after the other, and only while more records
can be acquired. If sixteen consumers share a partition, most of them wait; waking all at each acknowledgement would
take more time than the fetch that gets records.

Source: Kafka's purgatory of DelayedShareFetch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from broker.request.sleeper import Sleeper


class FetchQueue:
    """The waiting fetches of one share partition."""

    __slots__ = ("_has_room", "_is_offered", "_turns", "_waiters")

    def __init__(self, has_room: Callable[[], bool]) -> None:
        self._has_room = has_room
        self._waiters: dict[Sleeper, None] = {}
        self._turns: deque[Sleeper] = deque()
        """The waiters that have not tried since the last offer. Each tries once, so that an offer ends if no fetch can
        use it.
        """
        self._is_offered = False

    def __len__(self) -> int:
        return len(self._waiters)

    def add(self, waiter: Sleeper) -> None:
        self._waiters[waiter] = None

    def done(self, waiter: Sleeper) -> None:
        """Ends a waiter's attempt; the next waiter may try."""
        self._waiters.pop(waiter, None)
        if self._turns:
            self._next()

    def wake_all(self) -> None:
        """Wakes all waiters."""
        for waiter in tuple(self._waiters):
            waiter.wake()

    def end(self) -> None:
        """Wakes all waiters of a share partition that is unloaded; later offers find no room. The queue forgets its
        owner, so that both are freed at once."""
        self._has_room = _no_room
        self.wake_all()

    def offer(self) -> None:
        """Wakes the waiters one after the other, after this turn of the event loop, so that the acknowledging member
        may acquire first.
        """
        if self._waiters and not self._is_offered:
            self._is_offered = True
            asyncio.get_running_loop().call_soon(self._offered)

    def _offered(self) -> None:
        self._is_offered = False
        self._turns = deque(self._waiters)
        self._next()

    def _next(self) -> None:
        if not self._has_room():
            return
        while self._turns:
            waiter = self._turns.popleft()
            if waiter in self._waiters and not waiter.woken.done():
                waiter.wake()
                return


def _no_room() -> bool:
    return False
