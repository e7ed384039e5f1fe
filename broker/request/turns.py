"""Turns on the event loop: a request with much work pauses now and then, so that other connections are served.

Apache Kafka handles requests in several threads. Here all requests run on one loop, so a handler with many entries
awaits `Turns.next` between them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import Final, TypeVar

from broker.clock import NS_PER_MS, Clock, next_turn

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
            await next_turn()
            self._ends_ns = self._now_ns() + _TURN_NS

    async def map(self, answer: Callable[[Entry], Answer], entries: Sequence[Entry]) -> list[Answer]:
        """Returns each entry's answer, in order. The state may change between turns."""
        answers: list[Answer] = []
        for batch in batches(entries):
            await self.next()
            answers += map(answer, batch)
        return answers

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


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yields the entries in batches of ENTRIES."""
    return (entries[start : start + ENTRIES] for start in range(0, len(entries), ENTRIES))
