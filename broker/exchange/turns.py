"""Turns on the event loop: a request with much work pauses now and then, so that other connections are served.

Apache Kafka handles each request in a thread, and others go on in other threads. Here every request runs on one loop: a
handler that goes over many entries awaits `Turns.next` between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

from broker.clock import NS_PER_MS, Clock

TURN_MS: Final = 5
"""The time after which a request, or a connection with several, gives others their turn."""

_TURN_NS: Final = TURN_MS * NS_PER_MS
REQUESTS: Final = 256
"""Requests of one connection that are answered in one turn. A read can contain ten thousand of the smallest."""

ENTRIES: Final = 64
"""Entries that are handled together, if each takes some microseconds."""

Entry = TypeVar("Entry")
Answer = TypeVar("Answer")


class Turn:
    """The turn of a connection with several requests."""

    __slots__ = ("_ends_ns", "_now_ns")

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._ends_ns = clock.monotonic_ns() + _TURN_NS

    def is_over(self, answered: int) -> bool:
        """True if the turn is over after `answered` requests."""
        return answered >= REQUESTS or self._now_ns() >= self._ends_ns


class Turns:
    """The turns of one request. The first begins with the first `next`, which never waits."""

    __slots__ = ("_ends_ns", "_now_ns")

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._ends_ns = 0

    async def next(self) -> None:
        """Returns at once, or after others had their turn if this turn has been long enough."""
        now_ns = self._now_ns()
        if not self._ends_ns:
            self._ends_ns = now_ns + _TURN_NS
        elif now_ns >= self._ends_ns:
            await asyncio.sleep(0)
            self._ends_ns = self._now_ns() + _TURN_NS

    async def map(self, answer: Callable[[Entry], Answer], entries: Sequence[Entry]) -> list[Answer]:
        """Returns each entry's answer, in order. The state that they answer about may change between the turns."""
        answers: list[Answer] = []
        for batch in batches(entries):
            await self.next()
            answers += map(answer, batch)
        return answers

    async def map_awaited(self, answer: Callable[[Entry], Awaitable[Answer]], entries: Sequence[Entry]) -> list[Answer]:
        """Returns each entry's answer, in order, awaiting one after the other."""
        answers: list[Answer] = []
        for entry in entries:
            await self.next()
            answers.append(await answer(entry))
        return answers


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yields the entries in batches of ENTRIES."""
    return (entries[start : start + ENTRIES] for start in range(0, len(entries), ENTRIES))
