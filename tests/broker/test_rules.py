"""Tests the rules that authorize requests: the answer if a client is authorized for a part of its request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.fetch import fetch
from broker.replica.replicas import Replicas
from broker.request.authorisation import Operation, Resource
from broker.request.context import Context
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequestGroup as DescribedOffsets
from protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequestTopic as DescribedTopic
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
)
from protocol.messages.write_share_group_state import (
    PartitionData,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateData,
)
from tests.broker.asking import batch
from tests.broker.inprocess import LONG_S, InProcess
from tests.group_requests import fetched_group, offset_commit, offset_fetch, txn_offset_commit

LATEST = -1
DENIED = {
    "topic": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "group": ErrorCode.GROUP_AUTHORIZATION_FAILED,
    "cluster": ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


class DeniesNames:
    """An authorizer that denies everything about some names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        return name not in self.names

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        return True


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("open")
        broker.server.broker.authorizer = DeniesNames("secret", "kafka-cluster")
        yield broker


async def test_denied_topics_are_answered_behind_the_others(broker: InProcess) -> None:
    topics = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
        for name in ("secret", "open", "secret")
    ]
    answer = await broker.client().ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7, ListOffsetsResponse)
    answered = [(topic.name, [partition.error_code for partition in topic.partitions]) for topic in answer.topics]
    assert answered == [("open", [0]), ("secret", [DENIED["topic"]]), ("secret", [DENIED["topic"]])]


async def test_a_denied_group_that_is_named_twice_is_answered_once(broker: InProcess) -> None:
    request = DeleteGroupsRequest(groups_names=["secret", "secret"])
    answer = await broker.client().ask(request, 2, DeleteGroupsResponse)
    assert [(result.group_id, result.error_code) for result in answer.results] == [("secret", DENIED["group"])]


async def test_a_denied_group_rejects_each_topic_of_a_commit(broker: InProcess) -> None:
    request = offset_commit("secret", {"open": {3: 1}, "secret": {3: 1}})
    answer = await broker.client().ask(request, 8, OffsetCommitResponse)
    assert [(topic.name, topic.partitions[0].error_code) for topic in answer.topics] == [
        ("open", DENIED["group"]),
        ("secret", DENIED["group"]),
    ]


async def test_a_thread_rejects_a_large_request(broker: InProcess) -> None:
    partitions = [
        PartitionData(partition=index, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=[])
        for index in range(3_000)
    ]
    topics = [WriteStateData(topic_id=bytes(16), partitions=partitions)]
    request = WriteShareGroupStateRequest(group_id="open", topics=topics)
    answer = await broker.client().ask(request, 0, WriteShareGroupStateResponse)
    codes = {(partition.error_code, partition.error_message) for partition in answer.results[0].partitions}
    assert codes == {(DENIED["cluster"], DENIED["cluster"].message)}
    assert len(answer.results[0].partitions) == len(partitions)


async def test_coordinators_are_answered_in_the_order_of_the_keys(broker: InProcess) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["secret", "open"])
    answer = await broker.client().ask(request, 4, FindCoordinatorResponse)
    assert [coordinator.key for coordinator in answer.coordinators] == ["secret", "open"]
    assert answer.coordinators[0].error_code == DENIED["group"]


async def test_denied_topics_are_hidden_from_a_page_and_named_if_requested(broker: InProcess) -> None:
    names = await described(broker, [])
    assert names == {"open": 0}
    assert await described(broker, ["open", "secret"]) == {"open": 0, "secret": DENIED["topic"]}


async def test_a_wrong_cursor_tells_no_operations(broker: InProcess) -> None:
    answer = await page(broker, ["open"], Cursor(topic_name="secret", partition_index=0))
    operations = [(topic.error_code, topic.topic_authorized_operations) for topic in answer.topics]
    assert operations == [(ErrorCode.INVALID_REQUEST, -0x80000000)]


@pytest.fixture
async def coordinator(tmp_path: Path) -> AsyncIterator[InProcess]:
    """Yields a broker that coordinates groups."""
    options = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
    async with InProcess(tmp_path, options) as broker:
        await broker.create_topic("open")
        broker.server.broker.authorizer = DeniesNames()
        client = broker.client()
        finding = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
        await client.ask(finding, 6, FindCoordinatorResponse)
        reading = offset_fetch("group", {"open": [0]})
        async with asyncio.timeout(LONG_S):
            while (await client.ask(reading, 9, OffsetFetchResponse)).groups[0].error_code:  # noqa: ASYNC110 (it loads)
                await asyncio.sleep(0)
        broker.server.broker.authorizer = DeniesNames("secret", "kafka-cluster")
        yield broker


@contextmanager
def learns_late(owner: type, name: str, late_id: bytes) -> Iterator[None]:
    """Makes the first look-up of a topic's id find nothing, and later look-ups find the topic."""
    look_up = getattr(owner, name)
    asked: list[bytes] = []

    def first_unknown(self: object, topic_id: bytes) -> object:
        if topic_id == late_id and not asked:
            asked.append(topic_id)
            return None
        return look_up(self, topic_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, first_unknown)
        yield


async def test_a_topic_that_a_broker_learns_of_during_a_commit_is_unknown_to_it(
    broker: InProcess,
) -> None:
    topic_id = await broker.create_topic("secret")
    request = offset_commit("group", {"": {0: 1}}, ids={"": topic_id})
    with learns_late(Image, "topic_by_id", topic_id):
        answer = await broker.client().ask(request, 10, OffsetCommitResponse)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_topic_that_a_broker_learns_of_during_a_transactional_commit_is_unknown_to_it(
    broker: InProcess,
) -> None:
    topic_id = await broker.create_topic("secret")
    request = txn_offset_commit("group", "producer", (1, 0), {"": {0: 1}}, ids={"": topic_id})
    with learns_late(Image, "topic_by_id", topic_id):
        answer = await broker.client().ask(request, 6, TxnOffsetCommitResponse)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_topic_that_a_broker_learns_of_during_an_offset_fetch_is_unknown_to_it(
    coordinator: InProcess,
) -> None:
    topic_id = await coordinator.create_topic("secret")
    request = offset_fetch("group", {"": [0]}, ids={"": topic_id})
    with learns_late(Image, "topic_by_id", topic_id):
        answer = await coordinator.client().ask(request, 10, OffsetFetchResponse)
    (group,) = answer.groups
    assert [topic.partitions[0].error_code for topic in group.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_topic_that_a_broker_learns_of_while_it_describes_topics_is_unknown_to_it(
    broker: InProcess,
) -> None:
    topic_id = await broker.create_topic("secret")
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    with learns_late(Image, "topic_by_id", topic_id):
        answer = await broker.client().ask(request, 12, MetadataResponse)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]


@pytest.mark.source_only
async def test_a_topic_that_a_broker_learns_of_during_a_produce_is_unknown_to_it(
    broker: InProcess,
) -> None:
    topic_id = await broker.create_topic("secret")
    data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch(b"value"))])
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
    with learns_late(Replicas, "name_of", topic_id):
        answer = await broker.client().ask(request, 13, ProduceResponse)
    codes = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert broker.server.broker.replicas.partition("secret", 0).log_end_offset == 0


@pytest.mark.source_only
@pytest.mark.parametrize("largest", [0, 1], ids=["in turns", "at once"])
async def test_a_topic_that_a_broker_learns_of_during_a_fetch_is_unknown_to_it(
    largest: int, broker: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MANY_PARTITIONS", largest)
    broker.server.broker.fetches.authorizer = broker.server.broker.authorizer
    topic_id = await broker.create_topic("secret")
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[FetchTopic(topic_id=topic_id, partitions=partitions)]
    )
    with learns_late(Replicas, "name_of", topic_id):
        answer = await broker.client().ask(request, 13, FetchResponse)
    assert [topic.partitions[0].error_code for topic in answer.responses] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_offsets_of_groups_are_answered_in_the_order_of_the_request(coordinator: InProcess) -> None:
    request = OffsetFetchRequest(groups=[fetched_group("secret", {"open": [0]}), fetched_group("group", {"open": [0]})])
    answer = await coordinator.client().ask(request, 9, OffsetFetchResponse)
    answered = [(group.group_id, group.error_code) for group in answer.groups]
    assert answered == [("secret", DENIED["group"]), ("group", 0)]


async def test_each_mention_of_a_group_has_its_own_denied_topics(coordinator: InProcess) -> None:
    groups = [fetched_group("group", {name: [0]}) for name in ("secret", "open")]
    request = OffsetFetchRequest(groups=groups)
    answer = await coordinator.client().ask(request, 9, OffsetFetchResponse)
    answered = [[(topic.name, topic.partitions[0].error_code) for topic in group.topics] for group in answer.groups]
    assert answered == [[("secret", DENIED["topic"])], [("open", 0)]]


async def test_offsets_of_share_groups_are_answered_as_the_request_names_them(broker: InProcess) -> None:
    named = [("secret", "open"), ("group", "secret"), ("group", "absent")]
    groups = [
        DescribedOffsets(group_id=group, topics=[DescribedTopic(topic_name=topic, partitions=[0])])
        for group, topic in named
    ]
    request = DescribeShareGroupOffsetsRequest(groups=groups)
    answer = await broker.client().ask(request, 1, DescribeShareGroupOffsetsResponse)
    answered = [(group.group_id, [topic.topic_name for topic in group.topics]) for group in answer.groups]
    assert answered == [("secret", []), ("group", ["secret"]), ("group", ["absent"])]


async def test_a_share_group_whose_offsets_cannot_be_changed_has_no_topics(coordinator: InProcess) -> None:
    altered = await coordinator.client().ask(
        AlterShareGroupOffsetsRequest(
            group_id="",
            topics=[
                AlterShareGroupOffsetsRequestTopic(
                    topic_name="secret",
                    partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)],
                )
            ],
        ),
        0,
        AlterShareGroupOffsetsResponse,
    )
    assert (altered.error_code, altered.responses) == (ErrorCode.INVALID_GROUP_ID, [])
    deleted = await coordinator.client().ask(
        DeleteShareGroupOffsetsRequest(group_id="", topics=[DeleteShareGroupOffsetsRequestTopic(topic_name="secret")]),
        0,
        DeleteShareGroupOffsetsResponse,
    )
    assert (deleted.error_code, deleted.responses) == (ErrorCode.INVALID_GROUP_ID, [])


@pytest.mark.parametrize("name", ["secret", "open", "absent"])
async def test_a_name_beside_ids_is_not_looked_at(name: str, broker: InProcess) -> None:
    topic_id = await broker.create_topic("secret")
    topics = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name=name)]
    answer = await broker.client().ask(MetadataRequest(topics=topics), 12, MetadataResponse)
    assert [(topic.name, topic.topic_id) for topic in answer.topics] == [(None, topic_id)]
    assert broker.server.broker.image.topic("absent") is None


async def test_a_group_with_hidden_topics_shows_nothing_else(coordinator: InProcess) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id="group",
        member_id="m" * 22,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["open"],
        topic_partitions=[],
    )
    client = coordinator.client()
    assert not (await client.ask(joining, 1, ConsumerGroupHeartbeatResponse)).error_code
    coordinator.server.broker.authorizer = DeniesNames("open")
    request = ConsumerGroupDescribeRequest(group_ids=["group"], include_authorized_operations=True)
    (group,) = (await client.ask(request, 1, ConsumerGroupDescribeResponse)).groups
    shown = (group.error_code, group.group_state, group.group_epoch, group.assignor_name, group.authorized_operations)
    assert shown == (DENIED["topic"], "", 0, "", -0x80000000)


async def page(broker: InProcess, names: list[str], cursor: Cursor | None = None) -> DescribeTopicPartitionsResponse:
    topics = [TopicRequest(name=name) for name in names]
    request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=10, cursor=cursor)
    return await broker.client().ask(request, 0, DescribeTopicPartitionsResponse)


async def described(broker: InProcess, names: list[str]) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in (await page(broker, names)).topics}
