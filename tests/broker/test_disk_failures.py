"""Tests a broker whose disks fail or fill up."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from coordinator.cluster.topics.topic import NO_LEADER
from programs.run.housekeeping import Housekeeping
from protocol.errors import ErrorCode, error_code
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.types import TopicPartition
from storage.disk import Space
from storage.failure import LogDirFailure
from tests.broker.inprocess import LONG_S, Client, InProcess
from tests.storage.bad_disk import BROKEN, FULL, BadDisk
from tests.storage.writing import batch
from tests.waiting import until

TOPIC = "orders"


class Broker(InProcess):
    """A broker with two log directories, `good` (which also has the metadata) and `bad`, on a disk that a test can make
    fail."""

    def __init__(self, directory: Path, disk: BadDisk) -> None:
        super().__init__(directory, {"log.dirs": f"{directory}/good,{directory}/bad"})
        self.server._disk = disk
        self.disk = disk

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    def leader(self, partition: int) -> int:
        """Returns the leader according to the metadata."""
        registration = self.server.broker.image.partition(TopicPartition(TOPIC, partition))
        assert registration is not None
        return registration.leader

    def partition_in(self, directory: str) -> int:
        replicas = self.server.broker.replicas.topic(TOPIC).values()
        return next(one.name.partition for one in replicas if one.log.log_dir.endswith(directory))


def broken(part: str, *calls: str) -> Callable[[str, str], OSError | None]:
    return lambda call, path: BROKEN if part in path and (not calls or call in calls) else None


async def produce(client: Client, partition: int, value: str = "v") -> ErrorCode:
    data = PartitionProduceData(index=partition, records=batch(value))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])])
    response = await client.ask(request, 9, ProduceResponse)
    return error_code(response.responses[0].partition_responses[0].error_code)


async def fetch(client: Client, partition: int) -> tuple[ErrorCode, int]:
    """Returns the error, and the number of bytes read."""
    requested = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[requested])], forgotten_topics_data=[]
    )
    data = (await client.ask(request, 12, FetchResponse)).responses[0].partitions[0]
    return error_code(data.error_code), len(data.records or b"")


async def leaders(client: Client) -> dict[int, tuple[int, int, list[int]]]:
    """Returns partition → leader, error, offline replicas."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    topic = (await client.ask(request, 9, MetadataResponse)).topics[0]
    return {one.partition_index: (one.leader_id, one.error_code, one.offline_replicas) for one in topic.partitions}


async def test_a_directory_that_fails_is_offline_and_the_other_serves_on(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        client = broker.client()
        good, bad = broker.partition_in("good"), broker.partition_in("bad")
        for partition in (good, bad):
            assert await produce(client, partition) == ErrorCode.NONE
        disk.fault = broken("/bad/", "write")
        assert await produce(client, bad) == ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: broker.leader(bad) == NO_LEADER)
        disk.fault = broken("/bad/")
        assert await produce(client, bad) == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await fetch(client, bad))[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert await produce(client, good) == ErrorCode.NONE
        node = broker.server.config.node_id
        assert await leaders(client) == {good: (node, 0, []), bad: (-1, ErrorCode.LEADER_NOT_AVAILABLE, [node])}
        described = await client.ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
        assert [one.error_code for one in described.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert not (tmp_path / "bad" / ".kafka_cleanshutdown").exists()
    disk.fault = lambda call, path: None
    async with Broker(tmp_path, disk) as broker:
        client = broker.client()
        assert await leaders(client) == {good: (node, 0, []), bad: (node, 0, [])}
        assert (await fetch(client, bad))[1] > 0
        assert await produce(client, bad) == ErrorCode.NONE


async def test_a_failed_flush_takes_the_directory_offline(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2, flush_ms="0")
        client = broker.client()
        bad = broker.partition_in("bad")
        assert await produce(client, bad) == ErrorCode.NONE
        disk.fault = broken("/bad/", "fsync")
        async with asyncio.timeout(LONG_S):
            while await produce(client, bad) == ErrorCode.NONE:  # noqa: ASYNC110 (the first may be flushed before)
                await asyncio.sleep(0.05)
        assert broker.server.broker.replicas.is_offline(TopicPartition(TOPIC, bad))
        assert await produce(client, bad) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        client = broker.client()
        assert await produce(client, 0) == ErrorCode.NONE
        disk.fault = lambda call, path: FULL if call == "write" and path.endswith(".log") else None
        for _ in range(3):
            assert await produce(client, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        _, size = await fetch(client, 0)
        disk.fault = lambda call, path: None
        assert await produce(client, 0) == ErrorCode.NONE
        node = broker.server.config.node_id
        assert (await leaders(client))[0] == (node, 0, [])
        assert await fetch(client, 0) == (ErrorCode.NONE, 2 * size)


async def test_a_partition_that_there_was_no_room_for_is_opened_when_there_is(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        disk.fault = lambda call, path: FULL if call == "open" and TOPIC in path else None
        await broker.create_topic(TOPIC)
        client = broker.client()
        assert await produce(client, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        disk.fault = lambda call, path: None
        disk.measured = Space(1 << 30, 0)
        Housekeeping.check_room(broker.server.housekeeping)
        assert await produce(client, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        disk.measured = Space(1 << 30, 1 << 29)
        Housekeeping.check_room(broker.server.housekeeping)
        assert await produce(client, 0) == ErrorCode.NONE


async def test_a_directory_that_vanishes_is_missed_before_anything_is_written_to_it(tmp_path: Path) -> None:
    async with Broker(tmp_path, BadDisk()) as broker:
        await broker.create_topic(TOPIC, 2)
        shutil.rmtree(tmp_path / "bad")
        with pytest.raises(LogDirFailure):
            broker.server.broker.logs.look_for_dirs()
        await until(lambda: len(list(broker.server.broker.logs.online_dirs())) < 2)
        assert [log_dir.path for log_dir in broker.server.broker.logs.online_dirs()] == [str(tmp_path / "good")]
        broker.server.broker.logs.look_for_dirs()


async def test_without_the_directory_of_the_metadata_the_broker_stops(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        disk.fault = broken("/good/", "write")
        assert await produce(broker.client(), broker.partition_in("good")) == ErrorCode.KAFKA_STORAGE_ERROR
        await until(broker.server._stop.is_set)
        assert broker.server.exit_code == 1


async def test_a_broker_starts_without_a_directory_that_cannot_be_read(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        good, bad = broker.partition_in("good"), broker.partition_in("bad")
        for partition in (good, bad):
            assert await produce(broker.client(), partition) == ErrorCode.NONE
    disk.fault = broken("/bad/")
    async with Broker(tmp_path, disk) as broker:
        client = broker.client()
        assert await produce(client, good) == ErrorCode.NONE
        assert await produce(client, bad) == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await leaders(client))[bad][0] == -1
    disk.fault = lambda call, path: None
    async with Broker(tmp_path, disk) as broker:
        assert await produce(broker.client(), bad) == ErrorCode.NONE


async def test_an_empty_directory_in_the_place_of_one_with_partitions_does_not_stand_for_it(tmp_path: Path) -> None:
    disk = BadDisk()
    async with Broker(tmp_path, disk) as broker:
        await broker.create_topic(TOPIC, 2)
        bad = broker.partition_in("bad")
        assert await produce(broker.client(), bad) == ErrorCode.NONE
    os.rename(tmp_path / "bad", tmp_path / "unmounted")
    async with Broker(tmp_path, disk) as broker:
        assert await produce(broker.client(), bad) == ErrorCode.KAFKA_STORAGE_ERROR
        assert not list((tmp_path / "good").glob(f"{TOPIC}-{bad}"))
        assert not list((tmp_path / "bad").glob(f"{TOPIC}-{bad}"))
