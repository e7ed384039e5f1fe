"""Tests bugs of the broker, stage by stage: a bug fails only its own request, jobs and deadlines are repeated, and no
timer stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.clock import SystemClock
from broker.request.timeouts import Timeouts
from broker.shards.markers import Marker, MarkerWriter
from broker.shards.shares import ShareCoordinator
from broker.shards.storage import PartitionStorage
from coordinator.transaction.transaction import Producer
from programs.run import housekeeping
from programs.run.jobs import Job
from protocol.types import Buffer, TopicPartition
from tests.broker.inprocess import InProcess
from tests.broker.share.test_share_fetch import OPTIONS, Fetching
from tests.broker.test_waiting import Scripted
from tests.broker.transacting import TOPIC, TransactionalClient, broker_on
from tests.waiting import until

GUARD_S = 20
OTHER = "others"
TRANSACTION_STATE = "__transaction_state"


class Fault(Exception):
    pass


@pytest.mark.source_only
async def test_a_parked_request_that_fails_to_end_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of these requests wait equally long, and share a timer."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
    timeouts = Timeouts(SystemClock())
    first, second, third = (Scripted() for _ in range(3))
    monkeypatch.setattr(Scripted, "expire", fail_first(Scripted.expire, first))
    for parked in (first, second, third):
        timeouts.add(parked, 1)
    async with asyncio.timeout(GUARD_S):
        await third.is_answered.wait()
    assert second.answers == third.answers == [[b"in vain"]]
    assert [type(fault) for fault in faults] == [Fault]
    timeouts.add(again := Scripted(), 1)
    async with asyncio.timeout(GUARD_S):
        await again.is_answered.wait()


def fail_first(expire: Callable[[Scripted], None], failing: Scripted) -> Callable[[Scripted], None]:
    def expired(parked: Scripted) -> None:
        if parked is failing:
            raise Fault
        expire(parked)

    return expired


async def test_a_job_that_fails_comes_round_again_and_keeps_no_other_from_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: dict[str, int] = {"failing": 0, "failing in a thread": 0, "whole": 0}

    def job(name: str, *, fails: bool = False, in_thread: bool = False) -> Job[Any]:
        def run(_: object) -> None:
            done[name] += 1
            if fails:
                raise Fault

        return Job(name, lambda _: 1, run, in_thread=in_thread)

    jobs = (job("failing", fails=True), job("failing in a thread", fails=True, in_thread=True), job("whole"))
    monkeypatch.setattr(housekeeping, "JOBS", jobs)
    async with InProcess(tmp_path):
        await until(lambda: min(done.values()) >= 3)


async def test_a_log_that_cannot_be_loaded_keeps_no_other_from_its_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = PartitionStorage.read

    def reading(self: PartitionStorage[Any]) -> AsyncIterator[Buffer]:
        if self.partition.name == TopicPartition(TRANSACTION_STATE, 0):
            raise Fault
        return read(self)

    monkeypatch.setattr(PartitionStorage, "read", reading)
    async with broker_on(tmp_path) as broker:
        coordinator = broker.server.broker.transactions
        name = next(f"id-{n}" for n in range(100) if coordinator.partition_of(f"id-{n}") == 1)
        client = TransactionalClient(broker.client())
        await client.find(name, 1)
        async with asyncio.timeout(GUARD_S):
            assert (await client.producer(name)).epoch == 0
        assert not coordinator.is_active(0)


async def failing(*_: object) -> None:
    raise Fault


@pytest.mark.source_only
@pytest.mark.parametrize("waits", [False, True])
async def test_a_marker_that_fails_is_written_again_and_keeps_no_other_transaction_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    begin = MarkerWriter.begin
    faults: list[object] = []

    def begun(writer: MarkerWriter, name: TopicPartition, marker: Marker) -> object:
        if name == TopicPartition(TOPIC, 0) and len(faults) < 2:
            faults.append(name)
            if waits:
                return failing()
            raise Fault
        return begin(writer, name, marker)

    monkeypatch.setattr(MarkerWriter, "begin", begun)
    async with broker_on(tmp_path) as broker:
        await broker.create_topic(TOPIC, 2)
        client = TransactionalClient(broker.client())
        await client.find("x", 1)
        both: dict[str, Producer] = {}
        for index, name in enumerate(("fails", OTHER)):
            both[name] = await client.producer(name)
            await client.add(both[name], index, name=name)
        async with asyncio.timeout(GUARD_S):
            for name, producer in both.items():
                await client.end(producer, name=name)
            assert await client.settled(OTHER) == await client.settled("fails") == "CompleteCommit"
    assert len(faults) == 2


async def test_a_state_log_that_cannot_be_pruned_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned: list[int] = []

    def prune(_: ShareCoordinator, index: int) -> None:
        pruned.append(index)
        if index == 0:
            raise Fault

    monkeypatch.setattr(ShareCoordinator, "prune", prune)
    options = {**OPTIONS, "share.coordinator.state.topic.prune.interval.ms": "1"}
    async with InProcess(tmp_path, options) as broker:
        fetching = await Fetching.begin(broker)
        assert fetching.topic_id
        await until(lambda: pruned.count(0) > 1 and pruned.count(1) > 1)
