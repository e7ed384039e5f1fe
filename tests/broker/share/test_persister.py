"""Tests the order in which the operations of the persister reach the share coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.shards.shares import ShareCoordinator
from broker.share.persister import CoordinatorPersister
from broker.share.state_operations import DeleteState, InitializeState, ReadSummary, StateOperation, WriteState
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.errors import ErrorCode, KafkaError
from tests.clock import ManualClock
from tests.waiting import until

KEY = ShareKey("g", bytes(16), 0)


class Coordinator:
    """A share coordinator on this broker that loads, and commits, when a test says so."""

    def __init__(self, *, is_loaded: bool = True, commits: bool = True) -> None:
        self.is_loaded = is_loaded
        self.commits = commits
        self.decided: list[str] = []
        self.start_offsets: list[int] = []
        """The start offsets of the decided writes."""
        self.uncommitted: list[asyncio.Future[None]] = []
        self.clock = ManualClock()
        image = SimpleNamespace(topic_by_id=lambda _: SimpleNamespace(partitions={0: None}))
        self.environment = SimpleNamespace(clock=self.clock, image=image)

    def index_of(self, key: ShareKey) -> int:
        return 0

    def elsewhere(self, index: int) -> int | None:
        return None

    async def ensure_topic(self, key: ShareKey) -> None:
        """Does nothing: the topic is there."""

    def submit(self, key: ShareKey, decide: Callable[..., Any]) -> asyncio.Future[None]:
        if not self.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        operation = cast("Any", decide).__self__
        self.decided.append(text(operation))
        if isinstance(operation, WriteState):
            self.start_offsets.append(operation.written.start_offset)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.commits:
            answer.set_result(None)
        else:
            self.uncommitted.append(answer)
        return answer

    def fail(self, error: ErrorCode) -> None:
        """Fails the first operation that is not committed."""
        self.uncommitted.pop(0).set_exception(KafkaError(error))

    def commit(self) -> None:
        self.commits = True
        for answer in self.uncommitted:
            answer.set_result(None)
        self.uncommitted.clear()


def text(operation: StateOperation[object]) -> str:
    return (
        str(operation.written.batches[0].first_offset)
        if isinstance(operation, WriteState)
        else type(operation).__name__
    )


def persister_of(coordinator: Coordinator) -> CoordinatorPersister:
    return CoordinatorPersister(cast("ShareCoordinator", coordinator))


def write(offset: int, *, state_epoch: int = 0, leader_epoch: int = 0) -> WriteState:
    """Returns the write of one record's state, whose record is the first of the share partition."""
    return WriteState(KEY, StateWrite(state_epoch, leader_epoch, offset, 0, [StateBatch(offset, offset, 2, 1)]))


async def ended(coordinator: Coordinator, *answers: asyncio.Future[Any]) -> None:
    """Moves the clock until all operations have an answer."""

    def have_answers() -> bool:
        coordinator.clock.advance(10)
        return all(answer.done() for answer in answers)

    await until(have_answers)
    assert [answer.exception() for answer in answers] == [None] * len(answers)


async def test_a_deletion_that_times_out_is_not_repeated_after_a_later_initialization() -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    deleted = persister.submit(DeleteState(KEY))
    initialized = persister.submit(InitializeState(KEY, 2, -1))
    coordinator.fail(ErrorCode.REQUEST_TIMED_OUT)
    coordinator.commit()
    await ended(coordinator, deleted, initialized)
    assert coordinator.decided[-1] == "InitializeState"


async def test_a_write_waits_for_an_earlier_one_that_found_the_coordinator_loading() -> None:
    coordinator = Coordinator(is_loaded=False)
    persister = persister_of(coordinator)
    first = persister.submit(write(1))
    coordinator.is_loaded = True
    second = persister.submit(write(2))
    await ended(coordinator, first, second)
    assert coordinator.decided == ["1", "2"]


async def test_a_write_waits_for_an_earlier_one_that_is_repeated() -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    first = persister.submit(write(1))
    await asyncio.sleep(0)
    coordinator.is_loaded = False
    coordinator.fail(ErrorCode.NOT_COORDINATOR)
    second = persister.submit(write(2))
    coordinator.commits = coordinator.is_loaded = True
    await ended(coordinator, first, second)
    assert coordinator.decided[-1] == "2"


async def test_a_write_that_is_repeated_after_a_later_one_keeps_the_start_offset_of_the_later_one() -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    first, second = persister.submit(write(1)), persister.submit(write(2))
    await asyncio.sleep(0)
    coordinator.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # it timed out, but is in the log
    coordinator.commit()
    await ended(coordinator, first, second)
    assert coordinator.decided == ["1", "2", "1"]
    assert coordinator.start_offsets == [1, 2, 2]


async def test_a_repeat_has_the_start_offset_of_a_later_write_that_is_committed_before_the_repeat_begins() -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    first = persister.submit(write(1))
    await asyncio.sleep(0)
    coordinator.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    coordinator.commit()
    second = persister.submit(write(2))
    await ended(coordinator, first, second)
    assert coordinator.decided == ["1", "2", "1"]
    assert coordinator.start_offsets == [1, 2, 2]


@pytest.mark.parametrize("later", [write(2, state_epoch=1), write(2, leader_epoch=1)])
async def test_a_repeat_has_no_start_offset_of_another_state_or_leader(later: WriteState) -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    first, second = persister.submit(write(1)), persister.submit(later)
    await asyncio.sleep(0)
    coordinator.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    coordinator.commit()
    await ended(coordinator, first, second)
    assert coordinator.start_offsets == [1, 2, 1]


async def test_an_operation_that_is_cancelled_lets_none_overtake_an_earlier_one() -> None:
    coordinator = Coordinator(is_loaded=False)
    persister = persister_of(coordinator)
    first = persister.submit(write(1))
    await asyncio.sleep(0)
    summary = persister.submit(ReadSummary(KEY))
    await asyncio.sleep(0)
    second = persister.submit(write(2))
    summary.cancel()
    await asyncio.sleep(0)
    coordinator.is_loaded = True
    await ended(coordinator, first, second)
    assert coordinator.decided == ["1", "2"]


async def test_writes_wait_neither_for_the_commits_of_others_nor_for_reads() -> None:
    coordinator = Coordinator(commits=False)
    persister = persister_of(coordinator)
    answers: list[asyncio.Future[Any]] = [persister.submit(write(1)), persister.submit(ReadSummary(KEY))]
    answers += [persister.submit(write(2)), persister.submit(write(3))]
    assert coordinator.decided == ["1", "ReadSummary", "2", "3"]
    coordinator.commit()
    await ended(coordinator, *answers)
