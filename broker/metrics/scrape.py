"""Makes the page of metrics, one at a time, in turns with the broker's clients. All scrapers that wait get the same
page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from broker.clock import NS_PER_MS, Clock, next_turn
from broker.metrics.exposition import OPEN_METRICS, PLAIN, Family, end, prefers_open_metrics, written
from broker.metrics.http import HttpRequest, HttpResponse

TURN_NS: Final = NS_PER_MS // 4
"""Time after which the broker's clients are served: making a page of ten thousand partitions takes two tenths of a
second, and a request should not be delayed by longer than it takes itself.
"""

FRESH_MS: Final = 1_000
"""Time for which a page is served again, so that a busy scraper can't keep the event loop busy. No normal scraper asks
more often.
"""

FRESH_TIMES: Final = 20
"""A page is also served again for this many times the time that it took to make. So busy scrapers use at most a
twentieth of the event loop's time, for each of the two formats. A page that takes 200 ms is served for four seconds.
"""


T = TypeVar("T")


class Breaks:
    """Lets others run while a page is made, and measures the page's own time."""

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self._began_ns = clock.monotonic_ns()
        self.worked_ns = 0
        """The time used in completed turns, in ns."""

    async def next(self) -> None:
        """Returns at once, or after others have run if this turn has been long enough."""
        if self._now_ns() - self._began_ns >= TURN_NS:
            await self.during(next_turn())

    async def during(self, wait: Awaitable[T]) -> T:
        """Returns the result of `wait`; others run meanwhile."""
        self.end()
        result = await wait
        self._began_ns = self._now_ns()
        return result

    def end(self) -> None:
        """Ends the turn."""
        self.worked_ns += self._now_ns() - self._began_ns


Collect = Callable[[Breaks], AsyncIterator[Family]]
"""Yields all families; takes turns if there is much work between two of them."""


class Scraper:
    """The page of metrics."""

    def __init__(self, collect: Collect, clock: Clock) -> None:
        self._collect = collect
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._pages: dict[bool, asyncio.Task[tuple[bytes, ...]]] = {}
        """For each format, the page that is being made or served."""
        self.pages = 0
        """Number of pages made since the start."""
        self.worked_ms = 0.0
        """The event loop's time for the last page."""

    async def page(self, request: HttpRequest) -> HttpResponse:
        """Returns the page in the format that the request accepts. The page is completed for the next scraper even if
        no request waits for it now.
        """
        is_open_metrics = prefers_open_metrics(request.headers.get("accept", ""))
        making = self._pages.get(is_open_metrics)
        if making is None:
            making = self._pages[is_open_metrics] = asyncio.get_running_loop().create_task(self._made(is_open_metrics))
            making.add_done_callback(lambda made: self._done(is_open_metrics, made))
        body = await asyncio.shield(making)
        return HttpResponse(200, body, OPEN_METRICS if is_open_metrics else PLAIN)

    def close(self) -> None:
        """Makes no more pages."""
        for making in self._pages.values():
            making.cancel()

    def forget_pages(self) -> None:
        """Makes the next scraper get a new page."""
        self._pages.clear()

    def _done(self, is_open_metrics: bool, made: asyncio.Task[tuple[bytes, ...]]) -> None:
        if not made.cancelled():
            made.exception()  # a waiting request gets the error
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
