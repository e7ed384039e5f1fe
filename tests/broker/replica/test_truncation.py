"""Tests the truncation of a follower's log in a thread, and concurrent events: roles, deletions, moves, failures, the
stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Self

import pytest

from broker.disks.work import DiskWork
from broker.replica.partition import Partition
from broker.workers import Workers
from coordinator.replication.roles import Following, LeaderMoved, Leading
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.logs import Logs
from tests.broker.asking import batch, fetch, produce
from tests.broker.following import led_alone
from tests.broker.inprocess import LONG_S, InProcess
from tests.storage.bad_disk import BROKEN, BadDisk
from tests.waiting import until

T = TopicPartition("t", 0)
ME, OTHER = 1, 2
EPOCH = 5
"""The epoch in which the other broker leads."""
NEXT = EPOCH + 1
LATER_MS = 1 << 50
VALUES = [b"first", b"second", b"third", b"fourth"]


class Held(Workers):
    """Threads that begin to truncate logs when the test allows it."""

    def __init__(self) -> None:
        super().__init__(1, "held")
        self.held: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        self.held.append((work, then))

    def go(self) -> None:
        """Runs the waiting work to its end."""
        held, self.held = self.held, []
        for work, then in held:
            try:
                work()
            except Exception as error:
                then(error)
            else:
                then(None)


class Follower(InProcess):
    """A broker that follows another broker in partition 0 of `t`, with four records in four batches."""

    def __init__(self, directory: Path, options: dict[str, str] | None = None, *, holds: bool = True) -> None:
        super().__init__(directory, options)
        self.directory = directory
        self.disk = self.server._disk = BadDisk()
        self.workers = Held()
        self._holds = holds

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self.server.broker.image.topic("t") is None:
            await self.create_topic("t")
            for sequence, value in enumerate(VALUES):
                records = batch(value, producer_id=7, producer_epoch=0, base_sequence=sequence)
                assert (await produce(self.client(), "t", records)).base_offset == sequence
            self.partition.become(Following(OTHER, EPOCH, EPOCH), 0)
        if self._holds:
            self.server.broker.disk_work.workers = self.workers
        return self

    @property
    def disk_work(self) -> DiskWork:
        return self.server.broker.disk_work

    @property
    def logs(self) -> Logs:
        return self.server.logs

    @property
    def partition(self) -> Partition:
        return self.server.broker.replicas.partition(*T)

    def truncate(self, offset: int = 2, epoch: int = EPOCH) -> asyncio.Task[bool]:
        return asyncio.ensure_future(self.partition.truncate(offset, epoch, self.disk_work))

    async def begun(self, offset: int = 2) -> asyncio.Task[bool]:
        """Begins a truncation, and returns while it is in progress."""
        task = self.truncate(offset)
        await turns()
        assert self.workers.held
        return task


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def leads(epoch: int = NEXT, *, partition_epoch: int | None = None, end: int = 4) -> Leading:
    role = led_alone(ME, epoch, end)
    role.partition_epoch = epoch if partition_epoch is None else partition_epoch
    return role


def error_of(partition: Partition, epoch: int = -1) -> tuple[ErrorCode, int, int]:
    """Returns the error that clients get, and the leader that it names."""
    with pytest.raises(LeaderMoved) as caught:
        partition.check_leads(epoch)
    return caught.value.code, caught.value.leader_id, caught.value.leader_epoch


async def test_the_records_are_gone_once_the_thread_is_done(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        task = await broker.begun()
        assert not task.done()
        broker.workers.go()
        assert await task
        assert (broker.partition.log_end_offset, broker.partition.high_watermark) == (2, 2)
        assert f"{T.topic} {T.partition} 2" in (tmp_path / "replication-offset-checkpoint").read_text()


async def test_nothing_is_cut_behind_the_end(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        task = await broker.begun(4)
        broker.workers.go()
        assert not await task
        assert broker.partition.log_end_offset == 4


@pytest.mark.parametrize("role", [leads(), Following(OTHER, NEXT, NEXT)])
async def test_only_a_follower_of_that_epoch_is_cut(role: Leading | Following, tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        broker.partition.become(role, 0)
        with pytest.raises(LeaderMoved) as caught:
            await broker.truncate()
        assert (caught.value.code, broker.workers.held) == (ErrorCode.FENCED_LEADER_EPOCH, [])


async def test_a_partition_that_is_to_lead_does_so_once_its_log_is_whole(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        partition, client = broker.partition, broker.client()
        task = await broker.begun()
        partition.become(leads(), 0)
        assert not partition.leads
        assert error_of(partition) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, ME, NEXT)
        assert error_of(partition, NEXT) == (ErrorCode.UNKNOWN_LEADER_EPOCH, ME, NEXT)
        assert (await produce(client, "t", batch(b"x"))).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await fetch(client, "t")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker.workers.go()
        assert await task
        role = partition.role
        assert isinstance(role, Leading)
        assert (role.epoch, role.epoch_start, partition.log_end_offset) == (NEXT, 2, 2)
        answer = await produce(client, "t", batch(b"x"))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 2)
        assert partition.end_of_epoch(NEXT) == (NEXT, 3)


async def test_of_several_roles_the_newest_is_taken_over(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        task = await broker.begun()
        for role in (leads(), Following(OTHER, NEXT + 1, NEXT + 1), leads(NEXT, partition_epoch=NEXT)):
            broker.partition.become(role, 0)
        broker.workers.go()
        await task
        assert broker.partition.role == Following(OTHER, NEXT + 1, NEXT + 1)


async def test_a_second_truncation_follows_the_first_unless_the_leader_has_changed(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        first = await broker.begun(3)
        second = broker.truncate(1)
        await turns()
        assert len(broker.workers.held) == 1
        broker.workers.go()
        assert await first
        await turns()
        third = broker.truncate(0)
        broker.partition.become(Following(OTHER, NEXT, NEXT), 0)
        broker.workers.go()
        assert await second
        with pytest.raises(LeaderMoved):
            await third
        assert broker.partition.log_end_offset == 1


async def test_who_began_it_may_be_gone(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        task = await broker.begun()
        broker.partition.become(leads(), 0)
        task.cancel()
        await turns()
        assert broker.partition.truncation is not None
        broker.workers.go()
        assert (broker.partition.leads, broker.partition.log_end_offset) == (True, 2)


async def test_retention_cleaning_and_the_memory_of_producers_leave_it_alone(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        partition, log, cleaner = broker.partition, broker.partition.log, broker.server.housekeeping.cleaner
        partition.configure(LogConfig.parse({"retention.ms": "1"}))
        task = await broker.begun()

        def left_alone() -> tuple[bool, bool, bool]:
            retained = not broker.logs.apply_retention(LATER_MS)
            partition.forget_producers(LATER_MS)
            return retained, bool(partition.producers), not cleaner._may_be_cleaned(log)

        assert left_alone() == (True, True, True)
        broker.workers.go()
        await task
        assert left_alone() == (False, False, False)


async def test_a_topic_that_is_deleted_and_made_again_meanwhile_has_a_log_of_its_own(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        old, client = broker.partition, broker.client()
        task = await broker.begun()
        await delete(broker)
        assert old.gone is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (tmp_path / "t-0").exists()
        await broker.create_topic("t")
        assert (await produce(client, "t", batch(b"x"))).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker.workers.go()
        await task
        answer = await produce(client, "t", batch(b"x"))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
        assert broker.partition is not old
        assert [name for name in os.listdir(tmp_path) if name.startswith("t-0.") and name.endswith("-delete")]


async def test_a_topic_that_is_deleted_twice_meanwhile_is_gone(tmp_path: Path) -> None:
    async with Follower(tmp_path) as broker:
        task = await broker.begun()
        await delete(broker)
        await broker.create_topic("t")
        await delete(broker)
        broker.workers.go()
        await task
        with pytest.raises(KafkaError) as caught:
            _ = broker.partition
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not (tmp_path / "t-0").exists()


async def delete(broker: Follower) -> None:
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    response = await broker.server.broker.controller.submit(request, DeleteTopicsResponse)
    assert [topic.error_code for topic in response.responses] == [ErrorCode.NONE]


async def test_a_log_that_moves_is_cut_in_both_places(tmp_path: Path) -> None:
    there = tmp_path / "b"
    async with Follower(tmp_path, {"log.dirs": f"{tmp_path / 'a'},{there}"}) as broker:
        partition, moves = broker.partition, broker.server.broker.moves
        to = next(path for path in broker.logs.dirs if path != partition.log_dir)
        broker.logs.create_future(T, to, 0)
        assert broker.logs.copy_to_future(T, 0)
        task = await broker.begun()
        with pytest.raises(KafkaError) as caught:
            moves.begin(partition, partition.log_dir)
        assert caught.value.code is ErrorCode.REPLICA_NOT_AVAILABLE
        moves.resume(partition)
        await turns()
        assert partition.log_dir != to
        broker.workers.go()
        await task
        await until(lambda: partition.log_dir == to)
        assert partition.log_end_offset == 2


def two_dirs(directory: Path) -> dict[str, str]:
    """Returns two directories, neither of which has the metadata."""
    return {"log.dirs": f"{directory / 'a'},{directory / 'b'}", "metadata.log.dir": str(directory / "metadata")}


async def test_a_truncation_that_fails_takes_the_directory_offline_and_nobody_leads(tmp_path: Path) -> None:
    async with Follower(tmp_path, two_dirs(tmp_path)) as broker:
        partition = broker.partition
        task = await broker.begun()
        partition.become(leads(), 0)
        broker.disk.fault = lambda call, path: BROKEN if "t-0" in path else None
        broker.workers.go()
        with pytest.raises(KafkaError) as caught:
            await task
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (partition.leads, partition.gone) == (False, ErrorCode.KAFKA_STORAGE_ERROR)
        await turns()
        assert broker.server.broker.replicas.is_offline(T)


class ReleasedAtTheEnd(Workers):
    """A thread that continues its work once another thread waits for it."""

    def __init__(self, go: Event) -> None:
        super().__init__(1, "released")
        self._go = go

    def close(self) -> None:
        self._go.set()
        super().close()


async def test_a_broker_that_stops_waits_for_the_thread(tmp_path: Path) -> None:
    go, reached = Event(), Event()

    def held(call: str, path: str) -> None:
        if call == "fsync" and "t-0" in path:
            reached.set()
            assert go.wait(LONG_S)

    async with Follower(tmp_path, holds=False) as broker:
        broker.disk.fault = held
        broker.disk_work.workers = ReleasedAtTheEnd(go)
        task = broker.truncate()
        await asyncio.to_thread(reached.wait, LONG_S)
        broker.partition.become(leads(), 0)
        task.cancel()
        await turns()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    async with Follower(tmp_path) as broker:
        assert broker.partition.log_end_offset == 2
        records = (await fetch(broker.client(), "t")).records or b""
        assert [value in bytes(records) for value in VALUES] == [True, True, False, False]
