"""Turns on the event loop: a request with much work pauses now and then, so that other connections are served.

Apache Kafka handles requests in several threads. Here all requests run on one loop, so a handler with many entries
awaits `Turns.next` between them. However many such requests there are, one has its turn in each round of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from broker.clock import NS_PER_MS, Clock

TURN_MS: Final = 5
"""Time after which a request, or a connection with several requests, lets others run."""

_TURN_NS: Final = TURN_MS * NS_PER_MS
REQUESTS: Final = 256
"""Requests of one connection that are answered in one turn. One read can contain ten thousand small requests."""

ENTRIES: Final = 64
"""Entries that are handled together, if each takes a few microseconds."""

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


class TurnQueue:
    """The requests that wait for their next turn on an event loop, in order."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Returns in a later round of the loop, in which no other request has its turn."""
        loop = asyncio.get_running_loop()
        admitted = loop.create_future()
        self._waiting.append(admitted)
        if len(self._waiting) == 1:
            loop.call_soon(self._admit, loop)
        await admitted

    def _admit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Admits the first request that still waits; the next follows in the next round."""
        while self._waiting and self._waiting[0].done():  # its client is gone
            self._waiting.popleft()
        if self._waiting:
            self._waiting.popleft().set_result(None)
        if self._waiting:
            loop.call_soon(self._admit, loop)


QUEUES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, TurnQueue]] = WeakKeyDictionary()
"""The queue of each event loop."""


class Turns:
    """The turns of one request. The first begins with the first call of `next`, which never waits."""

    __slots__ = ("_ends_ns", "_now_ns", "taken")

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._ends_ns = 0
        self.taken = 0
        """Number of turns that others had."""

    async def next(self) -> None:
        """Returns at once, or after other requests have run if this turn has been long enough."""
        now_ns = self._now_ns()
        if not self._ends_ns:
            self._ends_ns = now_ns + _TURN_NS
        elif now_ns >= self._ends_ns:
            self.taken += 1
            await QUEUES.setdefault(asyncio.get_running_loop(), TurnQueue()).wait()
            self._ends_ns = self._now_ns() + _TURN_NS

    async def map(self, answer: Callable[[Entry], Answer], entries: Sequence[Entry]) -> list[Answer]:
        """Returns each entry's answer, in order. The state may change between turns."""
        answers: list[Answer] = []
        for batch in batches(entries):
            await self.next()
            answers += map(answer, batch)
        return answers

    async def find(self, answer: Callable[[Entry], Answer | None], entries: Sequence[Entry]) -> list[Answer]:
        """Returns the answers of entries that have one, in order. The state may change between turns."""
        return [found for found in await self.map(answer, entries) if found is not None]

    async def run(self, work: Generator[None, None, Answer]) -> Answer:
        """Returns the result of work that yields between its entries."""
        while True:
            await self.next()
            try:
                next(work)
            except StopIteration as ended:
                answer: Answer = ended.value
                return answer

    async def map_awaited(self, answer: Callable[[Entry], Awaitable[Answer]], entries: Sequence[Entry]) -> list[Answer]:
        """Returns each entry's answer, in order; awaits one answer after the other."""
        answers: list[Answer] = []
        for entry in entries:
            await self.next()
            answers.append(await answer(entry))
        return answers

    async def map_together(
        self, answer: Callable[[Entry], Awaitable[Answer]], entries: Sequence[Entry]
    ) -> list[Answer]:
        """Returns each entry's answer, in order; awaits the answers of a batch together."""
        if len(entries) == 1:
            return [await answer(entries[0])]
        answers: list[Answer] = []
        for batch in batches(entries):
            await self.next()
            answers += await asyncio.gather(*map(answer, batch))
        return answers


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yields the entries in batches of ENTRIES."""
    return (entries[start : start + ENTRIES] for start in range(0, len(entries), ENTRIES))
