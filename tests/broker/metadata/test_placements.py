"""Places of replicas reach the controllers, in few requests and however often these do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from broker.metadata.placements import MAX_PLACEMENTS, Placement, Placements
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.broker.peers.scripted import PATIENCE_S, ManualClock

ONE, TWO = b"directory-one---", b"directory-two---"
ORDERS = TopicPartition("orders", 0)
TURNS = 10


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.refusals = 0
        self.told: list[list[Placement]] = []
        self.placements = Placements(self.assign, self.clock, lambda: 0.5)

    async def assign(self, places: Iterable[Placement]) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self.told.append(list(places))

    async def turns(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)


async def test_what_is_noted_in_one_turn_is_told_together() -> None:
    world = World()
    names = [TopicPartition("orders", index) for index in range(3)]
    for name in names:
        world.placements.note(name, ONE)
    await world.turns()
    assert world.told == [[(name, ONE) for name in names]]


async def test_what_is_not_taken_is_told_again_after_a_pause() -> None:
    world = World()
    world.refusals = 2
    world.placements.note(ORDERS, ONE)
    waits = []
    async with asyncio.timeout(PATIENCE_S):
        while not world.told:
            waits.append(await world.clock.next_timer())
            world.clock.advance(waits[-1])
            await world.turns()
    assert (waits, world.told) == ([100, 200], [[(ORDERS, ONE)]])


async def test_the_last_word_counts() -> None:
    world = World()
    world.placements.note(ORDERS, ONE)
    world.placements.note(ORDERS, TWO)
    await world.turns()
    assert world.told == [[(ORDERS, TWO)]]


async def test_more_than_a_request_may_have_goes_into_several() -> None:
    world = World()
    for index in range(MAX_PLACEMENTS + 1):
        world.placements.note(TopicPartition("orders", index), ONE)
    await world.turns()
    assert [len(places) for places in world.told] == [MAX_PLACEMENTS, 1]


async def test_a_broker_that_stops_tells_no_more() -> None:
    world = World()
    world.refusals = 1
    world.placements.note(ORDERS, ONE)
    await world.turns()
    world.placements.stop()
    world.clock.advance(1_000)
    await world.turns()
    assert world.told == []
