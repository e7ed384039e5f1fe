"""Tests a machine that gets the outcome of each result: a failed write affects no other request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from coordinator.engine.result import Result
from protocol.errors import ErrorCode, KafkaError
from tests.coordinator.engine.test_engine import KEY, Bytes, Memory, Setting

FAILURE = KafkaError(ErrorCode.NETWORK_EXCEPTION)


class Undoing(Setting):
    """An engine with a counter that undoes records that weren't written."""

    def __init__(self) -> None:
        super().__init__(Memory(commit=False))
        self.outcomes: list[tuple[list[int], KafkaError | None]] = []

    async def load(self) -> None:
        await self.engine.load(KEY, self.shard, self.storage, Bytes(), None, self.outcome)

    def outcome(self, records: Sequence[int], error: KafkaError | None) -> None:
        self.outcomes.append((list(records), error))
        if error is not None:
            self.shard.total -= sum(records)

    def submit(self, amount: int) -> asyncio.Future[int]:
        return self.engine.submit(KEY, lambda ticket, _: self.shard.add(amount, ticket))

    def conclude(self, number: int, error: KafkaError | None = None) -> None:
        _, then = self.storage.waiting.pop(number)
        then(error)


@pytest.fixture
async def setting() -> Undoing:
    setting = Undoing()
    await setting.load()
    return setting


async def test_a_failed_write_fails_its_own_request_and_is_undone(setting: Undoing) -> None:
    first, second = setting.submit(3), setting.submit(4)
    setting.conclude(0, FAILURE)
    with pytest.raises(KafkaError, match="NETWORK_EXCEPTION"):
        await first
    assert not second.done()
    assert setting.outcomes == [([3], FAILURE)]
    setting.conclude(0)
    assert await second == 7
    assert setting.shard.total == 4
    assert not setting.failures


async def test_an_answer_waits_for_its_own_records_only(setting: Undoing) -> None:
    first, second = setting.submit(3), setting.submit(4)
    assert await setting.read() == 7
    setting.conclude(1)
    assert await second == 7
    assert not first.done()


async def test_an_unloaded_machine_still_has_the_outcome_of_its_writes(setting: Undoing) -> None:
    first = setting.submit(3)
    setting.engine.unload(KEY)
    assert not first.done()
    setting.conclude(0)
    assert await first == 3
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        setting.submit(1)


async def test_expiries_of_many_machines_come_in_several_turns_and_in_order() -> None:
    setting = await Setting(Memory()).loaded()
    order: list[int] = []

    class Due:
        def __init__(self, number: int) -> None:
            self.number = number
            self.due_ms: int | None = setting.clock.now_ms() + 1 + number % 2

        def apply(self, record: int) -> None:
            raise AssertionError

        def end(self) -> None:
            self.due_ms = None
            order.append(self.number)

        def expire(self, now_ms: int) -> Result[int]:
            return Result(effects=[self.end])

        def next_deadline_ms(self) -> int | None:
            return self.due_ms

        def expire_failed(self, error: Exception, now_ms: int) -> int:
            raise error

    for number in range(500):
        await setting.engine.load(number, Due(number), Memory(), Bytes())
    setting.clock.advance(2)
    assert order == [*range(0, 500, 2), *range(1, 500, 2)]
