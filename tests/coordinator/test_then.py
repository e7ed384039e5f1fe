"""A decision in two steps: the second one decides on the state that the first one's records have made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from coordinator.outcome import Outcome, Ticket, reply
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.test_faults import Fault, Faulty, fail
from tests.coordinator.test_runtime import KEY, Memory, soon


def add_then(world: Faulty, then: Callable[[Ticket[int]], Outcome[int]]) -> asyncio.Future[int]:
    """Adds 1, and has `then` decide on the sum."""
    return world.begin(lambda ticket, _: Outcome([1], then=lambda _now_ms: then(ticket)))


async def test_the_second_step_sees_what_the_first_has_written() -> None:
    world = await Faulty().loaded()
    assert await add_then(world, world.shard.read) == 1


async def test_the_second_step_may_write_and_lead_to_a_third() -> None:
    world = await Faulty().loaded()

    def add_two_more(ticket: Ticket[int]) -> Outcome[int]:
        return Outcome([2], then=lambda _: Outcome([3], then=lambda _: world.shard.read(ticket)))

    assert await add_then(world, add_two_more) == 6
    assert world.storage.content == bytes([1, 2, 3])


async def test_an_answer_of_the_second_step_waits_for_the_commit_of_the_first() -> None:
    storage = Memory(commit=False)
    world = await Faulty(storage).loaded()
    answer = add_then(world, world.shard.read)
    assert not await soon(answer)
    storage.commit()
    assert await answer == 1


async def test_a_first_step_that_cannot_be_written_has_no_second() -> None:
    world = await Faulty().loaded()
    world.storage.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    steps: list[str] = []
    with pytest.raises(KafkaError):
        add_then(world, lambda ticket: steps.append("second") or Outcome())  # type: ignore[func-returns-value]
    assert steps == []


async def test_a_second_step_that_fails_fails_for_its_request_and_keeps_what_was_written() -> None:
    world = await Faulty().loaded()
    parked = world.park()
    with pytest.raises(KafkaError) as caught:
        add_then(world, fail)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.faults == [(KEY, Fault)]
    assert world.shard.total == 1
    assert not await soon(parked)
    world.clock.advance(500)
    assert await parked == -1


async def test_a_deadline_may_decide_in_two_steps() -> None:
    world = await Faulty().loaded()
    parked = world.park()
    expire = world.shard.expire

    def expire_then(now_ms: int) -> Outcome[int]:
        return Outcome([7], then=expire)

    world.shard.expire = expire_then  # type: ignore[method-assign]
    world.clock.advance(500)
    assert await parked == -1
    assert world.shard.total == 1_007


async def test_a_shard_that_loses_its_place_over_the_first_step_has_no_second() -> None:
    storage = Memory(commit=False)
    world = await Faulty(storage).loaded()
    world.shard.apply = fail  # type: ignore[assignment,method-assign]
    with pytest.raises(KafkaError):
        add_then(world, lambda ticket: Outcome([2], [reply(ticket, 2)]))
    assert storage.content == bytes([1])
