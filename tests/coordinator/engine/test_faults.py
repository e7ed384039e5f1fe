"""Tests a decision, a deadline or a record that fails because of a bug: only it fails, and the bug is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import pytest

from coordinator.engine.engine import Engine
from coordinator.engine.loaded import Status
from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result, Ticket, answered, reply
from protocol.errors import ErrorCode, KafkaError
from tests.clock import ManualClock
from tests.coordinator.engine.test_engine import KEY, START_MS, Bytes, Counter, Memory, soon

OTHER = "another shard"


class Fault(Exception):
    pass


def fail(*_: object) -> Result[int]:
    raise Fault


class Faulty:
    """Two shards of one engine, and the reported bugs."""

    def __init__(self, storage: Memory | None = None) -> None:
        self.clock = ManualClock(START_MS)
        self.failures: list[tuple[Hashable, ErrorCode]] = []
        self.faults: list[tuple[Hashable, type[Exception]]] = []
        self.engine: Engine[int] = Engine(
            self.clock,
            lambda key, error: self.failures.append((key, error.code)),
            on_fault=lambda key, error: self.faults.append((key, type(error))),
        )
        self.shard, self.other = Counter(), Counter()
        self.storage = storage or Memory()

    async def loaded(self) -> Faulty:
        await self.engine.load(KEY, self.shard, self.storage, Bytes())
        await self.engine.load(OTHER, self.other, Memory(), Bytes())
        return self

    def submit(self, decision: Callable[[Ticket[int], int], Result[int]], key: str = KEY) -> asyncio.Future[int]:
        return self.engine.submit(key, decision)

    def park(self, key: str = KEY) -> asyncio.Future[int]:
        shard = self.shard if key == KEY else self.other
        return self.submit(lambda ticket, now_ms: shard.at_least(50, ticket, now_ms), key)

    def error_of(self, decision: Callable[[Ticket[int], int], Result[int]]) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            self.submit(decision)
        return caught.value.code


async def test_a_decision_that_fails_fails_for_its_own_request() -> None:
    world = await Faulty().loaded()
    parked = world.park()
    assert world.error_of(fail) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.faults == [(KEY, Fault)]
    assert not await soon(parked)
    world.clock.advance(500)
    assert await parked == -1


async def test_a_deadline_that_fails_keeps_no_other_shard_waiting() -> None:
    world = await Faulty().loaded()
    parked = [world.park(), world.park(OTHER)]
    world.shard.expire = fail  # type: ignore[assignment,method-assign]
    world.clock.advance(500)
    assert await parked[1] == -1
    assert world.faults == [(KEY, Fault)]
    assert not parked[0].done()


async def test_a_deadline_that_fails_comes_again_but_not_at_once() -> None:
    world = await Faulty().loaded()
    parked, expire = world.park(), world.shard.expire
    world.shard.expire = fail  # type: ignore[assignment,method-assign]
    world.clock.advance(500)
    assert [timer.when_ms for timer in world.clock.timers] == [1_500 + EXPIRY_RETRY_MS]
    world.submit(lambda ticket, _: world.shard.read(ticket))
    assert [timer.when_ms for timer in world.clock.timers] == [1_500 + EXPIRY_RETRY_MS]
    world.shard.expire = expire  # type: ignore[method-assign]
    world.clock.advance(EXPIRY_RETRY_MS)
    assert await parked == -1


async def test_an_expiry_that_refuses_is_no_end_of_time() -> None:
    world = await Faulty().loaded()
    parked, expire = world.park(), world.shard.expire

    def refuse(now_ms: int) -> Result[int]:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    world.shard.expire = refuse  # type: ignore[method-assign]
    world.clock.advance(500)
    world.shard.expire = expire  # type: ignore[method-assign]
    world.clock.advance(EXPIRY_RETRY_MS)
    assert await parked == -1
    assert world.faults == []


async def test_a_record_that_cannot_be_encoded_changes_nothing() -> None:
    world = await Faulty().loaded()
    assert world.error_of(lambda ticket, _: answered(ticket, 1, [-1])) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.faults == [(KEY, ValueError)]
    assert world.shard.total == 0
    assert world.engine.status(KEY) is Status.ACTIVE


async def test_a_record_that_cannot_be_applied_costs_the_shard_its_place() -> None:
    world = await Faulty().loaded()
    parked = world.park()
    world.shard.apply = fail  # type: ignore[assignment,method-assign]
    assert world.error_of(lambda ticket, _: answered(ticket, 1, [1])) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.faults == [(KEY, Fault)]
    assert world.failures == [(KEY, ErrorCode.NOT_COORDINATOR)]
    assert world.engine.status(KEY) is Status.FAILED
    with pytest.raises(KafkaError) as caught:
        await parked
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_a_storage_that_fails_as_none_should_costs_the_shard_its_place() -> None:
    world = await Faulty(BrokenMemory()).loaded()
    assert world.error_of(lambda ticket, _: world.shard.add(1, ticket)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.failures == [(KEY, ErrorCode.NOT_COORDINATOR)]
    assert world.engine.status(KEY) is Status.FAILED


class BrokenMemory(Memory):
    def append(self, batches: bytearray) -> int:
        raise OSError("the device is gone")


async def test_an_effect_that_fails_costs_the_shard_its_place() -> None:
    world = await Faulty().loaded()
    code = world.error_of(lambda ticket, _: Result([1], [reply(ticket, 1)], [fail]))
    assert code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.storage.content == bytes([1])
    assert world.failures == [(KEY, ErrorCode.NOT_COORDINATOR)]
