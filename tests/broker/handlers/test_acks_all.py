"""Tests commits by other replicas, as clients see them: acks=all waits, and consumers don't see the records yet."""

from __future__ import annotations

import asyncio

import pytest

from broker.replica.partition import Partition
from coordinator.cluster.topics import topic
from coordinator.replication.roles import Following, next_role
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from storage.config import LogConfig
from tests.broker.asking import batch, fetch, fetch_request, list_offset, produce_request
from tests.broker.following import FOLLOWER, acknowledge, follow
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame

PRODUCE = 0
LONG_MS = 600_000
LATEST, TIME = -1, 0


@pytest.fixture
async def partition(broker: InProcess) -> Partition:
    await broker.create_topic("t")
    return broker.server.broker.replicas.partition("t", 0)


def request(acks: int = -1, timeout_ms: int = LONG_MS) -> ProduceRequest:
    produced = produce_request("t", (0, batch(b"v")), acks=acks)
    produced.timeout_ms = timeout_ms
    return produced


class Producer:
    """Sends Produce requests, and checks whether an answer has arrived."""

    def __init__(self, broker: InProcess, version: int = 12) -> None:
        self.client = broker.client()
        self.version = version

    def send(self, produced: ProduceRequest) -> None:
        self.client.send(request_frame(produced, self.version))

    async def is_answered(self) -> bool:
        for _ in range(5):
            await asyncio.sleep(0)
        return bool(self.client.wire.sent)

    async def answer(self) -> PartitionProduceResponse:
        return (await self.whole()).responses[0].partition_responses[0]

    async def whole(self) -> ProduceResponse:
        (frame,) = await self.client.frames(1)
        return decode_response(frame, PRODUCE, self.version, ProduceResponse)


@pytest.mark.parametrize("version", [7, 12])
async def test_acks_all_is_answered_once_it_is_committed(version: int, broker: InProcess, partition: Partition) -> None:
    follow(partition)
    producer = Producer(broker, version)
    producer.send(request())
    assert not await producer.is_answered()
    assert (partition.log_end_offset, partition.high_watermark) == (1, 0)
    acknowledge(partition, 1)
    answer = await producer.answer()
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert not partition.waiters


async def test_acks_one_waits_for_nobody(broker: InProcess, partition: Partition) -> None:
    follow(partition)
    producer = Producer(broker)
    producer.send(request(acks=1))
    assert (await producer.answer()).error_code == ErrorCode.NONE


@pytest.mark.parametrize("timeout_ms", [20, 0, -5])
async def test_acks_all_that_is_not_committed_in_time_says_so(
    timeout_ms: int, broker: InProcess, partition: Partition
) -> None:
    follow(partition)
    producer = Producer(broker)
    producer.send(request(timeout_ms=timeout_ms))
    answer = await producer.answer()
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


async def test_too_few_in_sync_are_refused_before_anything_is_written(broker: InProcess, partition: Partition) -> None:
    partition.configure(LogConfig(min_insync_replicas=2))
    follow(partition, in_sync=False)
    producer = Producer(broker)
    producer.send(request())
    answer = await producer.answer()
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, 0)
    assert partition.log_end_offset == 0


async def test_a_leader_that_goes_while_it_waits_is_named_with_its_place(
    broker: InProcess, partition: Partition
) -> None:
    follow(partition)
    producer = Producer(broker)
    producer.send(request())
    assert not await producer.is_answered()
    partition.become(Following(1, 7, 1), 0)
    answer = await producer.whole()
    (data,) = answer.responses[0].partition_responses
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 7)
    assert [endpoint.node_id for endpoint in answer.node_endpoints] == [1]


@pytest.mark.parametrize("version", [9, 10])
async def test_who_does_not_lead_names_the_leader_to_who_understands_it(
    version: int, broker: InProcess, partition: Partition
) -> None:
    partition.become(Following(FOLLOWER, 7, 1), 0)
    producer = Producer(broker, version)
    producer.send(request())
    answer = await producer.whole()
    (data,) = answer.responses[0].partition_responses
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
    assert leader == ((FOLLOWER, 7) if version == 10 else (-1, -1))
    assert answer.node_endpoints == []  # nobody knows where that broker is


async def test_a_topic_that_is_deleted_while_it_waits_is_unknown(broker: InProcess, partition: Partition) -> None:
    follow(partition)
    producer = Producer(broker)
    producer.send(request())
    assert not await producer.is_answered()
    broker.server.broker.replicas.remove(partition.name)
    assert (await producer.answer()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_client_that_goes_while_it_waits_leaves_nothing(broker: InProcess, partition: Partition) -> None:
    follow(partition)
    producer = Producer(broker)
    producer.send(request())
    assert not await producer.is_answered()
    producer.client.connection.connection_lost(None)
    assert not partition.waiters


@pytest.mark.parametrize("version", [4, 12])
async def test_consumers_see_what_is_committed_only(
    version: int, broker: InProcess, client: Client, partition: Partition
) -> None:
    follow(partition)
    Producer(broker).send(request(acks=1))
    data = await fetch(client, "t", version=version)
    assert (data.high_watermark, data.last_stable_offset, bytes(data.records or b"")) == (0, 0, b"")
    beyond = await fetch(client, "t", 1, version=version)
    assert (beyond.error_code, bytes(beyond.records or b"")) == (ErrorCode.NONE, b"")
    assert (await list_offset(client, "t", LATEST)).offset == 0
    assert (await list_offset(client, "t", TIME)).offset == -1
    acknowledge(partition, 1)
    assert (await fetch(client, "t", version=version)).records
    assert (await list_offset(client, "t", LATEST)).offset == 1


async def test_a_consumer_that_waits_is_woken_by_the_commit_not_by_the_append(
    broker: InProcess, partition: Partition
) -> None:
    follow(partition)
    consumer = broker.client()
    consumer.send(request_frame(fetch_request("t", max_wait_ms=LONG_MS), 12))
    Producer(broker).send(request(acks=1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not consumer.wire.sent
    acknowledge(partition, 1)
    (frame,) = await consumer.frames(1)
    assert decode_response(frame, 1, 12, FetchResponse).responses[0].partitions[0].records


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
async def test_a_new_leader_that_is_behind_lists_no_end(
    version: int, code: ErrorCode, broker: InProcess, client: Client, partition: Partition
) -> None:
    follow(partition)
    Producer(broker).send(request(acks=1))
    elected = topic.PartitionRegistration((1, FOLLOWER), (1, FOLLOWER), leader=1, leader_epoch=2, partition_epoch=9)
    partition.become(next_role(partition.role, elected, 1, partition.log_end_offset, 0), 0)
    assert (await list_offset(client, "t", LATEST, version=version)).error_code == code
    acknowledge(partition, 1)
    assert (await list_offset(client, "t", LATEST, version=version)).offset == 1
