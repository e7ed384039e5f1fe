"""Makes the page of metrics: one at a time, in turns with the broker's clients, and once for all who ask meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from broker.clock import NS_PER_MS, Clock
from broker.metrics.exposition import OPEN_METRICS, PLAIN, Family, end, prefers_open_metrics, written
from broker.metrics.http import HttpRequest, HttpResponse

TURN_NS: Final = NS_PER_MS
"""After so long the clients of the broker have their turn: a page of ten thousand partitions takes a tenth of a
second."""

FRESH_MS: Final = 1_000
"""A page this young is served again, so that nobody who asks without pause keeps the loop busy. Nobody scrapes as often
as this."""


class Breaks:
    """Says when others have their turn."""

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._ends_ns = clock.monotonic_ns() + TURN_NS

    async def next(self) -> None:
        """Returns at once, or after the others' turn where this one has been long enough."""
        if self._now_ns() >= self._ends_ns:
            await asyncio.sleep(0)
            self._ends_ns = self._now_ns() + TURN_NS


Collect = Callable[[Breaks], AsyncIterator[Family]]
"""Yields all families; takes turns where it has much to do between two of them."""


class Scraper:
    """The page of metrics."""

    def __init__(self, collect: Collect, clock: Clock) -> None:
        self._collect = collect
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._pages: dict[bool, asyncio.Task[tuple[bytes, ...]]] = {}
        """The page of each format that is being made, or that was made within FRESH_MS."""
        self.pages = 0
        """Pages made since the start."""
        self.last_ms = 0.0
        """How long the last one took."""

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

    def _done(self, is_open_metrics: bool, made: asyncio.Task[tuple[bytes, ...]]) -> None:
        if not made.cancelled():
            made.exception()  # whoever waits for it is told
        self._clock.call_after(FRESH_MS, lambda: self._forget(is_open_metrics))

    def forget_pages(self) -> None:
        """Has whoever comes next get a page that is made anew."""
        self._pages.clear()

    def _forget(self, is_open_metrics: bool) -> None:
        self._pages.pop(is_open_metrics, None)

    async def _made(self, is_open_metrics: bool) -> tuple[bytes, ...]:
        async with self._one_at_a_time:
            return await self._written(is_open_metrics)

    async def _written(self, is_open_metrics: bool) -> tuple[bytes, ...]:
        begun_ns = self._clock.monotonic_ns()
        breaks, pieces = Breaks(self._clock), list[bytes]()
        async for family in self._collect(breaks):
            for piece in written(family, is_open_metrics):
                pieces.append(piece)
                await breaks.next()
            await breaks.next()
        pieces.append(end(is_open_metrics))
        self.pages += 1
        self.last_ms = (self._clock.monotonic_ns() - begun_ns) / NS_PER_MS
        return tuple(pieces)
