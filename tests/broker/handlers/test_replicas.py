"""Tests log directories, producers, elections and reassignments of a single node with two disks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tests.broker.asking import batch, fetch, produce
from tests.broker.inprocess import LONG_S, Client, InProcess


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"}


async def where(client: Client, topic: str) -> dict[str, list[tuple[int, bool]]]:
    """Returns the topic's partitions in each directory, and True for those that are being moved there."""
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=[0, 1])])
    answer = await client.ask(request, 4, DescribeLogDirsResponse)
    return {
        Path(result.log_dir).name: sorted(
            (partition.partition_index, partition.is_future_key)
            for topic in result.topics
            for partition in topic.partitions
        )
        for result in answer.results
    }


async def move(client: Client, topic: str, path: str, *partitions: int) -> list[int]:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = await client.ask(request, 2, AlterReplicaLogDirsResponse)
    return [partition.error_code for result in answer.results for partition in result.partitions]


async def test_directories_tell_what_is_in_them(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    await produce(client, "t", batch(b"a"))
    assert await where(client, "t") == {"one": [(0, False)], "two": [(1, False)]}
    answer = await client.ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    sizes = [partition.partition_size for partition in answer.results[0].topics[0].partitions]
    assert sizes == [len(batch(b"a"))]
    assert answer.results[0].total_bytes > answer.results[0].usable_bytes > 0


async def test_a_replica_moves_to_another_directory(tmp_path: Path, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    await produce(client, "t", batch(b"a"))
    assert await move(client, "t", f"{tmp_path}/two", 0) == [ErrorCode.NONE]
    async with asyncio.timeout(LONG_S):
        while (await where(client, "t"))["two"] != [(0, False), (1, False)]:  # noqa: ASYNC110 (a thread copies)
            await asyncio.sleep(0.01)
    assert (await fetch(client, "t")).high_watermark == 1


async def test_a_move_that_is_throttled_goes_on_once_it_is_not(
    tmp_path: Path, broker: InProcess, client: Client
) -> None:
    await broker.create_topic("t", 2)
    for _ in range(3):
        await produce(client, "t", batch(bytes(700_000)))
    live = broker.server.broker.live_config
    live.layers = live.layers.changed(broker={"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    assert await move(client, "t", f"{tmp_path}/two", 0) == [ErrorCode.NONE]
    moves = broker.server.broker.moves
    while not moves.throttle.is_exceeded:  # noqa: ASYNC110 (a task copies)
        await asyncio.sleep(0)
    assert (await where(client, "t"))["two"] == [(0, True), (1, False)]
    live.layers = live.layers.changed(broker={})
    async with asyncio.timeout(LONG_S):
        while (await where(client, "t"))["two"] != [(0, False), (1, False)]:  # noqa: ASYNC110 (a thread copies)
            await asyncio.sleep(0.01)


async def test_a_replica_moves_nowhere_else(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for path in ("/nowhere", "relative", ""):
        assert await move(client, "t", path, 0, 9) == [ErrorCode.LOG_DIR_NOT_FOUND] * 2


async def test_a_replica_that_is_not_here_does_not_move(tmp_path: Path, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    assert await move(client, "t", f"{tmp_path}/two", 9) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await move(client, "t", f"{tmp_path}/two") == []


async def test_a_partition_s_producers(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0))
    topics = [TopicRequest(name=name, partition_indexes=[0]) for name in ("t", "nowhere", "a b")]
    answer = await client.ask(DescribeProducersRequest(topics=topics), 0, DescribeProducersResponse)
    here, nowhere, invalid = (topic.partitions[0] for topic in answer.topics)
    (producer,) = here.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 1)
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_the_leader_is_the_preferred_one_already(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for kind in (0, 1):
        topics = [TopicPartitions(topic="t", partitions=[0, 9])]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=1000)
        answer = await client.ask(request, 2, ElectLeadersResponse)
        assert [partition.error_code for partition in answer.replica_election_results[0].partition_result] == [
            ErrorCode.ELECTION_NOT_NEEDED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


async def test_there_is_nowhere_to_reassign_to(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for replicas, code in (
        ([1], ErrorCode.NONE),
        ([2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ):
        partitions = [ReassignablePartition(partition_index=0, replicas=replicas)]
        topics = [ReassignableTopic(name="t", partitions=partitions)]
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=1000)
        answer = await client.ask(request, 1, AlterPartitionReassignmentsResponse)
        assert answer.responses[0].partitions[0].error_code == code
    listed = await client.ask(
        ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000), 0, ListPartitionReassignmentsResponse
    )
    assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", range(6))
async def test_no_producer_id_is_given_twice(version: int, client: Client) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answers = [await client.ask(request, version, InitProducerIdResponse) for _ in range(3)]
    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(ErrorCode.NONE, 0)] * 3
    assert len({answer.producer_id for answer in answers}) == 3


async def test_a_producer_tells_id_and_epoch_or_neither(client: Client) -> None:
    for producer_id, epoch in ((-1, 0), (5, -1)):
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=epoch
        )
        answer = await client.ask(request, 5, InitProducerIdResponse)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)
