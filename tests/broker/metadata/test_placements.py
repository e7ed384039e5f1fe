"""Tests that placements of replicas reach the controllers, in few requests, even if controllers don't answer for a
while."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from broker.metadata.placements import MAX_PLACEMENTS, Placement, Placements
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.client.scripted import PATIENCE_S
from tests.clock import ManualClock

ONE, TWO = b"directory-one---", b"directory-two---"
ORDERS = TopicPartition("orders", 0)
TURNS = 10


class PlacementsHarness:
    def __init__(self) -> None:
        self.clock = ManualClock(ahead_ms=5_000_000)
        self.refusals = 0
        self.reported: list[list[Placement]] = []
        self.placements = Placements(self.assign, self.clock, lambda: 0.5)

    async def assign(self, places: Iterable[Placement]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self.reported.append(list(places))

    async def turns(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)


async def test_what_is_noted_in_one_turn_is_told_together() -> None:
    harness = PlacementsHarness()
    names = [TopicPartition("orders", index) for index in range(3)]
    for name in names:
        harness.placements.note(name, ONE)
    await harness.turns()
    assert harness.reported == [[(name, ONE) for name in names]]


async def test_what_is_not_taken_is_told_again_after_a_pause() -> None:
    harness = PlacementsHarness()
    harness.refusals = 2
    harness.placements.note(ORDERS, ONE)
    waits = []
    async with asyncio.timeout(PATIENCE_S):
        while not harness.reported:
            waits.append(await harness.clock.next_timer())
            harness.clock.advance(waits[-1])
            await harness.turns()
    assert (waits, harness.reported) == ([100, 200], [[(ORDERS, ONE)]])


async def test_the_last_word_counts() -> None:
    harness = PlacementsHarness()
    harness.placements.note(ORDERS, ONE)
    harness.placements.note(ORDERS, TWO)
    await harness.turns()
    assert harness.reported == [[(ORDERS, TWO)]]


async def test_more_than_a_request_may_have_goes_into_several() -> None:
    harness = PlacementsHarness()
    for index in range(MAX_PLACEMENTS + 1):
        harness.placements.note(TopicPartition("orders", index), ONE)
    await harness.turns()
    assert [len(places) for places in harness.reported] == [MAX_PLACEMENTS, 1]


async def test_a_broker_that_stops_tells_no_more() -> None:
    harness = PlacementsHarness()
    harness.refusals = 1
    harness.placements.note(ORDERS, ONE)
    await harness.turns()
    harness.placements.stop()
    harness.clock.advance(1_000)
    await harness.turns()
    assert harness.reported == []
