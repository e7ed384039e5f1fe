"""Tests how often a page is made, and the length of its turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from broker.metrics.exposition import Family, gauge
from broker.metrics.http import HttpRequest
from broker.metrics.scrape import FRESH_MS, FRESH_TIMES, Breaks, Scraper
from tests.clock import ManualClock

PLAIN = HttpRequest("/metrics", False, {})
RICH = HttpRequest("/metrics", False, {"accept": "application/openmetrics-text"})


class Making:
    """A page that takes some time to make, and waits for something else before."""

    def __init__(self, clock: ManualClock, work_ms: int, wait_ms: int = 0) -> None:
        self.clock = clock
        self.work_ms = work_ms
        self.wait_ms = wait_ms
        self.pages = 0

    async def others(self) -> None:
        self.clock.time_ms += self.wait_ms

    async def families(self, breaks: Breaks) -> AsyncIterator[Family]:
        await breaks.during(self.others())
        for _ in range(self.work_ms):
            self.clock.time_ms += 1
            await breaks.next()
        self.pages += 1
        yield gauge("pages", "Made so far.", [("", self.pages)])


async def test_a_page_is_served_again_while_it_is_young() -> None:
    clock = ManualClock()
    work = Making(clock, work_ms=3)
    scraper = Scraper(work.families, clock)
    first = await scraper.page(PLAIN)
    assert (await scraper.page(PLAIN)).body == first.body
    assert (await scraper.page(RICH)).body != first.body
    clock.advance(FRESH_MS - 4)
    assert (await scraper.page(PLAIN)).body == first.body
    clock.advance(4)
    assert (await scraper.page(PLAIN)).body != first.body
    assert work.pages == 3
    scraper.close()


async def test_a_page_that_took_long_is_young_for_longer_whatever_it_waited_for() -> None:
    clock = ManualClock()
    scraper = Scraper(Making(clock, work_ms=200, wait_ms=900).families, clock)
    await scraper.page(PLAIN)
    await asyncio.sleep(0)
    assert scraper.worked_ms == 200
    (forgetting,) = clock.timers
    assert forgetting.when_ms - clock.time_ms == 200 * FRESH_TIMES


async def test_a_page_that_was_forgotten_does_not_take_the_next_one_with_it() -> None:
    clock = ManualClock()
    work = Making(clock, work_ms=1)
    scraper = Scraper(work.families, clock)
    await scraper.page(PLAIN)
    scraper.forget_pages()
    second = await scraper.page(PLAIN)
    await asyncio.sleep(0)
    clock.advance(clock.timers[0].when_ms - clock.time_ms)  # the first page's
    assert (await scraper.page(PLAIN)).body == second.body
    scraper.close()
