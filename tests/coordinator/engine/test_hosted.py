"""Tests a machine that decides on uncommitted state: records are applied first, and undone if they aren't written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from coordinator.engine.engine import Engine
from protocol.errors import ErrorCode, KafkaError
from tests.clock import ManualClock
from tests.coordinator.engine.test_engine import Counter

KEY = "the machine"
LIMIT = 100


class Log:
    """A log that commits records when a test says so, and may be full."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.is_full = False
        self.waiting: list[Callable[[KafkaError | None], None]] = []

    def append(self, records: Sequence[int], _: int) -> int:
        if self.is_full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
        self.records += records
        return len(self.records)

    def when_committed(self, _: int, then: Callable[[KafkaError | None], None]) -> None:
        self.waiting.append(then)

    def commit(self, error: KafkaError | None = None) -> None:
        for then in self.waiting:
            then(error)
        self.waiting.clear()


class Limited(Counter):
    """A sum that accepts no record beyond its limit."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def apply(self, record: int) -> None:
        super().apply(record)
        if self.total > LIMIT:
            raise KeyError(self.total)

    def restore(self) -> None:
        self.total = sum(self.log.records)


class Hosted:
    def __init__(self) -> None:
        self.log = Log()
        self.machine = Limited(self.log)
        self.faults: list[Exception] = []
        self.failures: list[KafkaError] = []
        self.engine: Engine[int] = Engine(
            ManualClock(),
            lambda _, error: self.failures.append(error),
            on_fault=lambda _, error: self.faults.append(error),
        )
        self.engine.host(KEY, self.machine, self.log.append, self.log.when_committed, 0)

    def add(self, amount: int) -> asyncio.Future[int]:
        return self.engine.submit(KEY, lambda ticket, _: self.machine.add(amount, ticket))


async def test_a_record_that_cannot_be_applied_is_never_in_the_log() -> None:
    hosted = Hosted()
    first = hosted.add(5)
    with pytest.raises(KafkaError):
        hosted.add(LIMIT)
    assert (hosted.log.records, hosted.machine.total, len(hosted.faults)) == ([5], 5, 1)
    hosted.log.commit()
    assert first.result() == 5


async def test_what_is_not_written_is_not_in_the_state_and_others_requests_go_on() -> None:
    hosted = Hosted()
    first = hosted.add(5)
    hosted.log.is_full = True
    with pytest.raises(KafkaError, match="no room"):
        hosted.add(7)
    assert (hosted.machine.total, hosted.faults, hosted.failures) == (5, [], [])
    hosted.log.is_full = False
    second = hosted.add(1)
    hosted.log.commit()
    assert (first.result(), second.result()) == (5, 6)


async def test_when_the_lead_is_lost_nothing_that_was_decided_is_answered() -> None:
    hosted = Hosted()
    waiting = hosted.add(5)
    lost = KafkaError(ErrorCode.NOT_CONTROLLER)
    hosted.log.commit(lost)
    with pytest.raises(KafkaError) as refused:
        await waiting
    assert (refused.value, hosted.failures) == (lost, [lost])
    with pytest.raises(KafkaError):
        hosted.add(1)
