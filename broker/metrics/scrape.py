"""Makes the page of metrics: one at a time, in turns with the broker's clients, and once for all who ask meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from broker.clock import NS_PER_MS, Clock
from broker.metrics.exposition import OPEN_METRICS, PLAIN, Family, end, prefers_open_metrics, written
from broker.metrics.http import HttpRequest, HttpResponse

TURN_NS: Final = NS_PER_MS // 4
"""After so long the clients of the broker have their turn: a page of ten thousand partitions takes two tenths of a
second, and no request is to wait longer than it takes itself."""

FRESH_MS: Final = 1_000
"""A page this young is served again, so that nobody who asks without pause keeps the loop busy. Nobody scrapes as often
as this."""

FRESH_TIMES: Final = 20
"""A page that took long is served again for so many times as long: a twentieth of the loop is what all who ask without
pause can have, for each of the two formats. At 200 ms for a page that is four seconds."""


T = TypeVar("T")


class Breaks:
    """Says when others have their turn, and counts the time that it takes from them."""

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._began_ns = clock.monotonic_ns()
        self.worked_ns = 0
        """The time in turns that are over."""

    async def next(self) -> None:
        """Returns at once, or after the others' turn where this one has been long enough."""
        if self._now_ns() - self._began_ns >= TURN_NS:
            await self.during(asyncio.sleep(0))

    async def during(self, wait: Awaitable[T]) -> T:
        """Returns the result of what is waited for, while others have their turns."""
        self.end()
        result = await wait
        self._began_ns = self._now_ns()
        return result

    def end(self) -> None:
        """The turn is over."""
        self.worked_ns += self._now_ns() - self._began_ns


Collect = Callable[[Breaks], AsyncIterator[Family]]
"""Yields all families; takes turns where it has much to do between two of them."""


class Scraper:
    """The page of metrics."""

    def __init__(self, collect: Collect, clock: Clock) -> None:
        self._collect = collect
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._pages: dict[bool, asyncio.Task[tuple[bytes, ...]]] = {}
        """The page of each format that is being made, or that is young."""
        self.pages = 0
        """Pages made since the start."""
        self.worked_ms = 0.0
        """How long the loop worked for the last one."""

    async def page(self, request: HttpRequest) -> HttpResponse:
        """Returns the page in the format that the request accepts. It is made to its end for whoever comes next, also
        where nobody waits for it any more."""
        is_open_metrics = prefers_open_metrics(request.headers.get("accept", ""))
        making = self._pages.get(is_open_metrics)
        if making is None:
            making = self._pages[is_open_metrics] = asyncio.get_running_loop().create_task(self._made(is_open_metrics))
            making.add_done_callback(lambda made: self._done(is_open_metrics, made))
        body = await asyncio.shield(making)
        return HttpResponse(200, body, OPEN_METRICS if is_open_metrics else PLAIN)

    def close(self) -> None:
        """Makes no more."""
        for making in self._pages.values():
            making.cancel()

    def forget_pages(self) -> None:
        """Has whoever comes next get a page that is made anew."""
        self._pages.clear()

    def _done(self, is_open_metrics: bool, made: asyncio.Task[tuple[bytes, ...]]) -> None:
        if not made.cancelled():
            made.exception()  # whoever waits for it is told
        fresh_ms = max(FRESH_MS, self.worked_ms * FRESH_TIMES)
        self._clock.call_after(fresh_ms, lambda: self._forget(is_open_metrics, made))

    def _forget(self, is_open_metrics: bool, made: asyncio.Task[tuple[bytes, ...]]) -> None:
        if self._pages.get(is_open_metrics) is made:
            del self._pages[is_open_metrics]

    async def _made(self, is_open_metrics: bool) -> tuple[bytes, ...]:
        async with self._one_at_a_time:
            return await self._written(is_open_metrics)

    async def _written(self, is_open_metrics: bool) -> tuple[bytes, ...]:
        breaks, pieces = Breaks(self._clock), list[bytes]()
        async for family in self._collect(breaks):
            for piece in written(family, is_open_metrics):
                pieces.append(piece)
                await breaks.next()
            await breaks.next()
        pieces.append(end(is_open_metrics))
        self.pages += 1
        breaks.end()
        self.worked_ms = breaks.worked_ns / NS_PER_MS
        return tuple(pieces)
