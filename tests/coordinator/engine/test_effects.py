"""Tests that effects follow the application of records, and precede the replies and the next decision."""

from __future__ import annotations

import pytest

from coordinator.engine.result import Result, Ticket, reply
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.engine.test_engine import KEY, Memory, soon
from tests.coordinator.engine.test_faults import Faulty


async def test_an_effect_sees_the_records_applied_and_no_reply() -> None:
    world = await Faulty().loaded()
    parked = world.park()
    seen: list[tuple[int, bool]] = []

    def decide(ticket: Ticket[int], now_ms: int) -> Result[int]:
        added = world.shard.add(60, ticket)
        return Result(added.records, added.replies, [lambda: seen.append((world.shard.total, parked.done()))])

    assert await world.submit(decide) == 60
    assert seen == [(60, False)]


async def test_an_effect_does_not_wait_for_the_commit() -> None:
    storage = Memory(commit=False)
    world = await Faulty(storage).loaded()
    seen: list[str] = []
    answer = world.submit(lambda ticket, _: Result([1], [reply(ticket, 1)], [lambda: seen.append("effect")]))
    assert seen == ["effect"]
    assert not await soon(answer)
    storage.commit()
    assert await answer == 1


async def test_records_that_cannot_be_appended_have_no_effects() -> None:
    world = await Faulty().loaded()
    world.storage.refuses = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    seen: list[str] = []
    with pytest.raises(KafkaError):
        world.submit(lambda ticket, _: Result([1], [reply(ticket, 1)], [lambda: seen.append("effect")]))
    assert seen == []


async def test_deadlines_that_pass_together_expire_one_by_one() -> None:
    world = await Faulty().loaded()
    expired: list[int] = []

    def expire(now_ms: int) -> Result[int]:
        return Result([1], (), [lambda: expired.append(world.shard.total)])

    world.shard.expire = expire  # type: ignore[method-assign]
    world.shard.next_deadline_ms = lambda: 1_500 if len(expired) < 3 else None  # type: ignore[method-assign]
    await world.submit(lambda ticket, _: world.shard.read(ticket))
    world.clock.advance(500)
    assert expired == [1, 2, 3]


async def test_a_machine_with_endless_deadlines_leaves_the_loop_to_others() -> None:
    world = await Faulty().loaded()
    world.shard.expire = lambda now_ms: Result()  # type: ignore[method-assign]
    world.shard.next_deadline_ms = lambda: 1_500  # type: ignore[method-assign]
    await world.submit(lambda ticket, _: world.shard.read(ticket))
    world.clock.time_ms += 500
    world.clock.ring()
    assert [timer.when_ms for timer in world.clock.timers] == [1_500]
    assert world.engine.status(KEY) is not None
