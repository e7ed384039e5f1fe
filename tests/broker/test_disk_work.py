"""Tests that records and checkpoints are on the disk before a client gets its answer."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from threading import Event, current_thread
from typing import TypeVar

import pytest

from broker.disks.work import Rounds
from broker.workers import Workers
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker.inprocess import Client, InProcess
from tests.broker.test_disk_failures import TOPIC, Broker, broken, fetch, produce
from tests.storage.bad_disk import BadDisk
from tests.waiting import until

T = TypeVar("T")


async def delete(client: Client, offset: int) -> tuple[int, int]:
    """Returns the low watermark and the error."""
    requested = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    request = DeleteRecordsRequest(topics=[requested], timeout_ms=1000)
    result = (await client.ask(request, 2, DeleteRecordsResponse)).topics[0].partitions[0]
    return result.low_watermark, result.error_code


async def test_deleted_records_are_checkpointed_before_the_answer(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic(TOPIC)
        client = broker.client()
        for _ in range(3):
            await produce(client, 0)
        assert await delete(client, 2) == (2, 0)
        assert (tmp_path / "log-start-offset-checkpoint").read_text() == f"0\n1\n{TOPIC} 0 2\n"
        assert await delete(client, 9) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)


async def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        client = broker.client()
        await produce(client, 0)
        directory = broker.server.broker.replicas.partition(TOPIC, 0).log.log_dir
        disk.fault = broken(f"{directory}/log-start", "write")
        assert await delete(client, 1) == (-1, ErrorCode.KAFKA_STORAGE_ERROR)
        disk.fault = lambda call, path: None


async def test_with_flush_messages_a_record_is_on_the_device_before_it_is_acknowledged(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic(TOPIC, 1, flush_messages="2")
        log = broker.server.broker.replicas.partition(TOPIC, 0).log
        client = broker.client()
        await produce(client, 0)
        assert log.recovery_point == 0
        await produce(client, 0)
        assert log.recovery_point == 2
        await asyncio.gather(*(produce(broker.client(), 0) for _ in range(20)))
        assert log.recovery_point == 22


async def test_a_flush_that_fails_is_the_answer(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2, flush_messages="1")
        bad = broker.partition_in("bad")
        disk.fault = broken("/bad/", "fsync")
        assert await produce(broker.client(), bad) == ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: [log_dir.path for log_dir in broker.server.logs.online_dirs()] == [str(tmp_path / "good")])


async def test_those_who_come_during_a_round_share_the_next() -> None:
    workers, go = Workers(1, "test"), Event()
    rounds_done: list[int] = []

    def work() -> None:
        go.wait()
        rounds_done.append(1)

    rounds = Rounds(work, workers)
    first = asyncio.ensure_future(rounds.served())
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(rounds.served()) for _ in range(5)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(first, *others)
    assert len(rounds_done) == 2
    assert rounds.is_idle
    workers.close()


async def test_a_round_that_fails_fails_for_all_it_served() -> None:
    workers, go = Workers(1, "test"), Event()

    def work() -> None:
        go.wait()
        raise OSError("broken")

    rounds = Rounds(work, workers)
    waiting = [asyncio.ensure_future(rounds.served()) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()
    for one in waiting:
        with pytest.raises(OSError, match="broken"):
            await one
    workers.close()


class EndlessWorkers(Workers):
    """Work that has not ended at the time of a simulated crash."""

    def begin(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().create_future()


def test_a_loop_that_is_discarded_during_a_round_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # its tasks are destroyed
    rounds = Rounds(lambda: None, EndlessWorkers(1, "test"))
    callers = [loop.create_task(rounds.served()) for _ in range(2)]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del rounds, callers, loop
    gc.collect()
    assert unraisable == []


class ColdDisk(BadDisk):
    """A disk whose pages are not in memory until a thread has read them ahead."""

    __slots__ = ("in_memory", "threads")

    def __init__(self) -> None:
        super().__init__()
        self.in_memory, self.threads = Event(), list[str]()
        self.in_memory.set()

    def is_resident(self, handle: int, offset: int, size_bytes: int) -> bool:
        return self.in_memory.is_set()

    def read_ahead(self, handle: int, offset: int, size_bytes: int) -> None:
        self.threads.append(current_thread().name)
        self.in_memory.set()


async def test_a_fetch_of_what_is_not_in_memory_waits_in_a_thread(tmp_path: Path) -> None:
    disk = ColdDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 1)
        client = broker.client()
        await produce(client, 0)
        broker.server.broker.replicas.partition(TOPIC, 0).log.roll(0)
        disk.in_memory.clear()
        code, size = await fetch(client, 0)
        assert (code, size > 60) == (ErrorCode.NONE, True)
        assert disk.threads
        assert all(name.startswith("requests") for name in disk.threads)
