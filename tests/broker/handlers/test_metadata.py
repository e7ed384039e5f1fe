"""Tests Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from broker.replica.topics import TopicCreator
from coordinator.cluster.controller import THIS_BROKER, Asker
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.types import NO_UUID
from tests.broker.inprocess import Client, InProcess

NEWEST = 13

R = TypeVar("R")


def request(*names: str | None, topic_id: bytes = NO_UUID, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name, topic_id=topic_id) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


@pytest.mark.parametrize("version", range(NEWEST + 1))
async def test_brokers_and_partitions(version: int, broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", 2)
    answer = await client.ask(request("t"), version, MetadataResponse)
    assert [node.node_id for node in answer.brokers] == [1]
    (topic,) = answer.topics
    assert [
        (partition.partition_index, partition.leader_id, partition.isr_nodes) for partition in topic.partitions
    ] == [
        (0, 1, [1]),
        (1, 1, [1]),
    ]


async def test_all_topics_are_an_empty_list_first_and_null_later(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    everything = MetadataRequest(topics=None)
    assert [topic.name for topic in (await client.ask(request(), 0, MetadataResponse)).topics] == ["t"]
    assert (await client.ask(request(), 1, MetadataResponse)).topics == []
    assert [topic.name for topic in (await client.ask(everything, 1, MetadataResponse)).topics] == ["t"]


async def test_each_topic_is_told_once(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    assert len((await client.ask(request("t", "t"), NEWEST, MetadataResponse)).topics) == 1


async def test_what_is_not_here_and_what_cannot_be(client: Client) -> None:
    answer = await client.ask(request("nowhere", "a b"), NEWEST, MetadataResponse)
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


async def test_topics_by_id(broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    await broker.create_topic("u")
    by_id = await client.ask(request("u", topic_id=topic_id), NEWEST, MetadataResponse)
    unknown = await client.ask(request(None, topic_id=b"\7" * 16), NEWEST, MetadataResponse)
    assert [topic.name for topic in by_id.topics] == ["t"]
    assert [topic.error_code for topic in unknown.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_ids_are_refused_before_version_12(broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    answer = await client.ask(request("t", topic_id=topic_id), 11, MetadataResponse)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
    answer = await client.ask(request("__consumer_offsets", topic_id=topic_id), 11, MetadataResponse)
    assert [topic.is_internal for topic in answer.topics] == [False]


async def test_a_topic_is_made_by_asking_for_it_if_it_may(client: Client) -> None:
    requested = request("t", "a b", create=True)
    answer = await client.ask(requested, NEWEST, MetadataResponse)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    answer = await client.ask(request("u"), NEWEST, MetadataResponse)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestWithoutAutoCreation:
    @pytest.fixture
    def options(self) -> dict[str, str]:
        return {"auto.create.topics.enable": "false"}

    async def test_nothing_is_made(self, client: Client) -> None:
        answer = await client.ask(request("t", create=True), NEWEST, MetadataResponse)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class ControllerElsewhere:
    """A controller with its own defaults, which records the topics that it is asked to create."""

    def __init__(self) -> None:
        self.topics: list[CreatableTopic] = []

    active = None
    has_renounced = False

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        assert isinstance(request, CreateTopicsRequest)
        self.topics += request.topics
        answer: Any = response
        return answer(topics=[])  # type: ignore[no-any-return]


async def auto_created(broker: InProcess, client: Client, *names: str) -> list[tuple[str, int, int]]:
    """Returns the name, partitions and replication factor of the topics that the controller is asked to create."""
    controller = ControllerElsewhere()
    broker.server.broker.topics = TopicCreator(controller, broker.server.broker.new_logs)
    await client.ask(request(*names, create=True), NEWEST, MetadataResponse)
    return [(topic.name, topic.num_partitions, topic.replication_factor) for topic in controller.topics]


class TestWithDefaultsOfItsOwn:
    @pytest.fixture
    def options(self) -> dict[str, str]:
        return {"num.partitions": "3", "default.replication.factor": "2", "offsets.topic.num.partitions": "7"}

    async def test_a_topic_is_made_by_the_defaults_of_the_broker(self, broker: InProcess, client: Client) -> None:
        topics = await auto_created(broker, client, "t", "__consumer_offsets")
        assert topics == [("t", 3, 2), ("__consumer_offsets", 7, 3)]


async def test_the_controllers_defaults_decide_if_the_broker_sets_none(broker: InProcess, client: Client) -> None:
    topics = await auto_created(broker, client, "t", "__consumer_offsets")
    assert topics == [("t", -1, -1), ("__consumer_offsets", 50, 3)]


class TestWithOneDefaultOfItsOwn:
    @pytest.fixture
    def options(self) -> dict[str, str]:
        return {"num.partitions": "3"}

    async def test_the_controllers_default_decides_on_the_other(self, broker: InProcess, client: Client) -> None:
        assert await auto_created(broker, client, "t") == [("t", 3, -1)]


class TestWithTooManyPartitions:
    @pytest.fixture
    def options(self) -> dict[str, str]:
        return {"num.partitions": "10000"}

    async def test_a_topic_is_not_made_and_its_error_told(self, broker: InProcess, client: Client) -> None:
        answer = await client.ask(request("t", create=True), NEWEST, MetadataResponse)
        assert answer.topics[0].error_code == ErrorCode.POLICY_VIOLATION
        assert broker.server.broker.image.topic("t") is None


async def test_the_cluster(broker: InProcess, client: Client) -> None:
    answer = await client.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=False), 2, DescribeClusterResponse
    )
    assert answer.cluster_id == broker.server.broker.image.cluster_id
    assert [(node.broker_id, node.is_fenced) for node in answer.brokers] == [(1, False)]


async def test_controllers_are_not_to_be_had_here(client: Client) -> None:
    for endpoint_type, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        answer = await client.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type),
            2,
            DescribeClusterResponse,
        )
        assert (answer.error_code, answer.brokers) == (code, [])


async def test_partitions_page_by_page(broker: InProcess, client: Client) -> None:
    await broker.create_topic("a", 2)
    await broker.create_topic("b", 3)
    topics = [TopicRequest(name=name) for name in ("b", "a")]
    requested = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=3)
    seen = []
    while True:
        answer = await client.ask(requested, 0, DescribeTopicPartitionsResponse)
        seen.append([(topic.name, len(topic.partitions)) for topic in answer.topics])
        if answer.next_cursor is None:
            break
        requested.cursor = Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
    assert seen == [[("a", 2), ("b", 1)], [("b", 2)]]
