"""Tests fetches that wait for records of a share partition: they are woken in turn, as long as records can be
acquired."""

from __future__ import annotations

import asyncio
import gc
from weakref import ref

from broker.request.sleeper import Sleeper
from broker.share.queue import FetchQueue


class Line:
    """A queue with three waiters, and a limited number of available records."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.queue = FetchQueue(lambda: self.room > 0)
        self.waiters = [Sleeper(1) for _ in range(3)]
        for waiter in self.waiters:
            self.queue.add(waiter)

    @property
    def woken(self) -> list[bool]:
        return [waiter.woken.done() for waiter in self.waiters]

    async def offer(self) -> None:
        self.queue.offer()
        await asyncio.sleep(0)


async def test_the_first_in_line_is_woken_and_the_next_once_it_has_looked() -> None:
    line = Line(room=1)
    await line.offer()
    assert line.woken == [True, False, False]
    line.queue.done(line.waiters[0])
    assert line.woken == [True, True, False]


async def test_nobody_is_woken_where_there_is_no_room_left() -> None:
    line = Line(room=1)
    line.queue.offer()
    assert line.woken == [False, False, False], "who made the room may take it first"
    line.room = 0
    await asyncio.sleep(0)
    assert line.woken == [False, False, False]


async def test_one_that_goes_hands_its_turn_on() -> None:
    line = Line(room=1)
    line.queue.done(line.waiters[0])
    await line.offer()
    assert line.woken == [False, True, False]


async def test_an_offer_that_nobody_can_use_ends() -> None:
    line = Line(room=1)
    await line.offer()
    for waiter in tuple(line.waiters):
        assert waiter.woken.done()
        line.queue.done(waiter)
        line.waiters.append(Sleeper(1))
        line.queue.add(line.waiters[-1])
    assert line.woken == [True] * 3 + [False] * 3


async def test_all_are_woken_where_everything_may_be_different() -> None:
    line = Line(room=0)
    line.queue.wake_all()
    assert line.woken == [True] * 3


async def test_a_queue_that_has_ended_wakes_all_offers_nothing_and_does_not_keep_its_owner() -> None:
    line = Line(room=3)
    queue, owner = line.queue, ref(line)
    gc.disable()
    try:
        line.queue.end()
        assert line.woken == [True, True, True]
        del line
        assert owner() is None
    finally:
        gc.enable()
    late = Sleeper(1)
    queue.add(late)
    queue.offer()
    await asyncio.sleep(0)
    assert not late.woken.done()
