"""Tests the creation of a topic with many partitions: other clients are served meanwhile, and concurrent changes do no
harm."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest

from broker.metadata.local_controller import LocalController
from broker.replica.new_logs import NewLogs
from broker.replica.replicas import Replicas
from broker.steps import STEP_MS
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import ProduceResponse
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import NO_UUID
from tests.broker.asking import batch, fetch, produce, produce_request
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame
from tests.clock import ManualClock
from tests.waiting import WITHIN_S

MANY = 40
LAST = MANY - 1
OPTIONS = {
    "num.partitions": str(MANY),
    "offsets.topic.num.partitions": str(MANY),
    "offsets.topic.replication.factor": "1",
}
CREATE_TOPICS, METADATA, PRODUCE_BY_ID = 19, 12, 13


class HeldBack(NewLogs):
    """Creates no logs while `is_held`, because a request that waits for a disk takes more turns than all logs do."""

    is_held = False

    def _step(self) -> None:
        if self.is_held:
            asyncio.get_running_loop().call_soon(self._step)
        else:
            super()._step()


class Slowly(InProcess):
    """A broker that creates one log in each turn of the event loop."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        server = self.server
        self.new_logs = server.broker.new_logs = server.broker.topics.new_logs = HeldBack(ManualClock(tick_ms=STEP_MS))
        server.assignments.new_logs = self.new_logs
        return self

    @property
    def replicas(self) -> Replicas:
        return self.server.broker.replicas

    async def half_made(self, topic: str = "t") -> None:
        """Returns once some of the topic's partitions exist and some don't."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.replicas.topic(topic)) < MANY // 4:  # noqa: ASYNC110 (each turn may create a log)
                await asyncio.sleep(0)
        assert len(self.replicas.topic(topic)) < MANY // 2


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Slowly]:
    async with Slowly(tmp_path / "data", OPTIONS) as broker:
        yield broker


def begin_to_create(client: Client, topic: str = "t") -> None:
    topic_of_many = CreatableTopic(name=topic, num_partitions=MANY, replication_factor=1, assignments=[], configs=[])
    client.send(request_frame(CreateTopicsRequest(topics=[topic_of_many], timeout_ms=1000), 7))


async def created(client: Client) -> int:
    """Returns the error code in the answer about the topic."""
    (frame,) = await client.frames(1)
    return decode_response(frame, CREATE_TOPICS, 7, CreateTopicsResponse).topics[0].error_code


async def test_others_are_answered_meanwhile(broker: Slowly) -> None:
    creating, other = broker.client(), broker.client()
    await broker.create_topic("before")
    begin_to_create(creating)
    await broker.half_made()
    assert (await produce(other, "before", batch(b"a"))).base_offset == 0
    assert len(broker.replicas.topic("t")) < MANY
    assert not creating.wire.sent
    assert await created(creating) == ErrorCode.NONE
    assert (await produce(creating, "t", batch(b"a"), partition=LAST)).error_code == ErrorCode.NONE


async def test_what_is_not_there_yet_is_asked_for_again(broker: Slowly) -> None:
    creating, other = broker.client(), broker.client()
    begin_to_create(creating)
    await broker.half_made()
    topic = broker.server.broker.image.topic("t")
    assert topic is not None
    assert (await produce(other, "t", batch(b"a"))).error_code == ErrorCode.NONE
    not_yet = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await produce(other, "t", batch(b"a"), partition=LAST)).error_code == not_yet
    assert (await fetch(other, "t", partition=LAST)).error_code == not_yet
    request = produce_request("", (LAST, batch(b"a")))
    request.topic_data[0].topic_id = topic.topic_id
    answer = await other.ask(request, PRODUCE_BY_ID, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == not_yet
    assert await created(creating) == ErrorCode.NONE
    assert (await fetch(other, "t", partition=LAST)).error_code == ErrorCode.NONE


async def test_more_partitions_are_there_when_they_are_answered(broker: Slowly) -> None:
    await broker.create_topic("t")
    topics = [CreatePartitionsTopic(name="t", count=MANY, assignments=None)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)
    await broker.client().ask(request, 3, CreatePartitionsResponse)
    assert len(broker.replicas.topic("t")) == MANY


async def test_a_topic_that_a_client_asked_for_is_there_when_it_is_told(broker: Slowly) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=NO_UUID)], allow_auto_topic_creation=True)
    answer = await broker.client().ask(request, METADATA, MetadataResponse)
    assert len(answer.topics[0].partitions) == len(broker.replicas.topic("t")) == MANY


async def test_a_coordinator_is_found_when_all_of_its_shards_are_there(broker: Slowly) -> None:
    first, second = broker.client(), broker.client()
    request = FindCoordinatorRequest(key="g", key_type=0)
    first.send(request_frame(request, 3))
    await broker.half_made("__consumer_offsets")
    assert (await second.ask(request, 3, FindCoordinatorResponse)).error_code == ErrorCode.NONE
    assert len(broker.server.broker.groups.shards) == MANY


async def test_a_topic_may_be_deleted_before_it_is_whole(broker: Slowly, tmp_path: Path) -> None:
    creating, other = broker.client(), broker.client()
    begin_to_create(creating)
    await broker.half_made()
    broker.new_logs.is_held = True
    await other.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    broker.new_logs.is_held = False
    assert await created(creating) == ErrorCode.NONE
    assert (await produce(other, "t", batch(b"a"))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await produce(other, "t", batch(b"a"), partition=LAST)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await broker.create_topic("t", MANY)
    assert (await produce(other, "t", batch(b"a"), partition=LAST)).base_offset == 0
    deleted = [*(tmp_path / "data").glob("t-*-delete")]
    assert MANY // 4 <= len(deleted) < MANY


async def test_partitions_that_follow_have_the_config_of_then(broker: Slowly) -> None:
    creating, other = broker.client(), broker.client()
    begin_to_create(creating)
    await broker.half_made()
    config = AlterableConfig(name="retention.ms", config_operation=0, value="12345")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    await other.ask(
        IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1, IncrementalAlterConfigsResponse
    )
    await created(creating)
    assert {partition.log.config.retention_ms for partition in broker.replicas.topic("t").values()} == {12345}


async def test_partitions_that_follow_have_the_leader_epoch_of_then(broker: Slowly) -> None:
    creating = broker.client()
    begin_to_create(creating)
    await broker.half_made()
    topic = broker.server.broker.image.topic("t")
    assert topic is not None
    leader = topic.partitions[LAST].leader
    for index in (LAST, 0):
        change = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=leader)
        controller = broker.server.broker.controller
        assert isinstance(controller, LocalController)
        await controller.write([change])
    await broker.new_logs.changes.over()
    await created(creating)
    assert [broker.replicas.partition("t", index).leader_epoch for index in (0, 1, LAST)] == [1, 0, 1]


async def test_a_broker_that_stops_does_not_wait_and_makes_them_at_its_next_start(tmp_path: Path) -> None:
    async with Slowly(tmp_path, OPTIONS) as broker:
        creating = broker.client()
        begin_to_create(creating)
        await broker.half_made()
    assert not (tmp_path / f"t-{LAST}").exists()
    async with InProcess(tmp_path, OPTIONS) as again:
        for index in (0, LAST):
            assert (await produce(again.client(), "t", batch(b"a"), partition=index)).base_offset == 0


async def test_a_killed_broker_makes_them_at_its_next_start(broker: Slowly, tmp_path: Path) -> None:
    creating = broker.client()
    begin_to_create(creating)
    await broker.half_made()
    assert (await produce(broker.client(), "t", batch(b"a"))).base_offset == 0
    shutil.copytree(tmp_path / "data", tmp_path / "as a kill leaves it")
    async with InProcess(tmp_path / "as a kill leaves it", OPTIONS) as again:
        assert (await produce(again.client(), "t", batch(b"b"))).base_offset == 1
        assert (await produce(again.client(), "t", batch(b"a"), partition=LAST)).base_offset == 0
