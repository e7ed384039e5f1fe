"""Tests the metrics of groups by kafka_exporter's rules, and the high watermarks of partitions that other brokers
lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from broker.clock import SystemClock
from broker.dispatch.broker import Broker
from broker.metrics import ends as module
from broker.metrics import groups
from broker.metrics.ends import EndsElsewhere
from broker.metrics.groups import known_end
from broker.replica.partition import Partition
from broker.request.context import Context
from broker.request.turns import Turns
from client.errors import PeerUnavailable
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.types import TopicPartition
from tests.broker.asking import batch, produce
from tests.broker.inprocess import Client, InProcess
from tests.broker.metrics.scraping import OPTIONS, scraped
from tests.group_requests import offset_commit

HERE, LEADER, OTHER = 0, 1, 2
SMALL = {**OPTIONS, "offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, SMALL) as broker:
        yield broker


async def filled(broker: InProcess) -> Client:
    """Returns a client of a topic with two partitions, the first with three records."""
    await broker.create_topic("t", 2)
    client = broker.client()
    context = Context(client.connection, ApiKey.FIND_COORDINATOR, 0, 1, "c", 100)
    await broker.server.broker.auto_create_topics(["__consumer_offsets"], context, Turns(SystemClock()))
    await broker.settled()
    assert (await produce(client, "t", batch(b"a", b"b", b"c"))).error_code == 0
    return client


async def commit(client: Client, index: int, offset: int, group: str = "g") -> None:
    response = await client.ask(offset_commit(group, {"t": {index: offset}}), 8, OffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code == 0


async def test_a_lag_is_less_than_none_behind_an_offset_beyond_the_end(broker: InProcess) -> None:
    client = await filled(broker)
    await commit(client, 0, 13)
    values = await scraped(broker)
    assert values["kafka_consumergroup_lag{consumergroup=g,partition=0,topic=t}"] == -10
    assert values["kafka_consumergroup_lag_sum{consumergroup=g,topic=t}"] == -10


def test_a_follower_that_is_behind_a_group_does_not_know_the_end() -> None:
    follower = cast(Partition, SimpleNamespace(high_watermark=3, leads=False))
    assert known_end(follower, 5) is None
    assert known_end(follower, 3) == 3
    assert known_end(cast(Partition, SimpleNamespace(high_watermark=3, leads=True)), 5) == 3
    assert known_end(None, 5) is None


async def test_groups_are_told_as_far_as_there_is_room(broker: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await filled(broker)
    for group in ("g", "long" * 2_000, "h"):
        await commit(client, 0, 1, group)
    monkeypatch.setattr(groups, "MAX_CHARACTERS", 1_000)
    values = await scraped(broker)
    assert values["odradek_groups_left_out{}"] == 1
    members = {key for key in values if key.startswith("kafka_consumergroup_members")}
    assert members == {"kafka_consumergroup_members{consumergroup=g}", "kafka_consumergroup_members{consumergroup=h}"}


async def test_groups_are_counted_by_protocol_and_state(broker: InProcess) -> None:
    client = await filled(broker)
    for group in ("g", "h"):
        await commit(client, 0, 1, group)
    await commit(client, 1, 1, "g")
    name = "kafka_server_group_coordinator_metrics"
    counts = {key.removeprefix(f"{name}_"): value for key, value in (await scraped(broker)).items() if name in key}
    assert {key: value for key, value in counts.items() if value} == {
        "group_count{protocol=classic}": 2,
        "classic_group_count{state=empty}": 2,
        "offset_count{}": 3,
    }
    assert counts["classic_group_count{state=preparing_rebalance}"] == 0
    assert counts["streams_group_count{state=not_ready}"] == counts["group_count{protocol=share}"] == 0


async def test_what_a_group_is_called_is_escaped(broker: InProcess) -> None:
    client, name = await filled(broker), 'a"b\\c\nd}\x00 \ufffdé'
    await commit(client, 0, 1, name)
    assert (await scraped(broker))[f"kafka_consumergroup_members{{consumergroup={name}}}"] == 0


async def test_a_partition_without_an_offset_has_a_lag_of_minus_one(broker: InProcess) -> None:
    client = await filled(broker)
    await commit(client, 0, 1)
    values = await scraped(broker)
    assert values["kafka_consumergroup_current_offset{consumergroup=g,partition=0,topic=t}"] == 1
    assert values["kafka_consumergroup_lag{consumergroup=g,partition=0,topic=t}"] == 2
    assert values["kafka_consumergroup_current_offset{consumergroup=g,partition=1,topic=t}"] == -1
    assert values["kafka_consumergroup_lag{consumergroup=g,partition=1,topic=t}"] == -1
    assert values["kafka_consumergroup_current_offset_sum{consumergroup=g,topic=t}"] == 0
    assert values["kafka_consumergroup_lag_sum{consumergroup=g,topic=t}"] == 2


class Leaders:
    """The other brokers: their answers, by leader and partition."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int]] = []
        self.is_away = False
        self.is_silent = False

    async def send(
        self, leader_id: int, purpose: str, request: ListOffsetsRequest, response: type[ListOffsetsResponse]
    ) -> ListOffsetsResponse:
        self.requests.append((leader_id, sum(len(topic.partitions) for topic in request.topics)))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_away:
            raise PeerUnavailable(f"node {leader_id}", "is away")
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[end_of(one.partition_index) for one in topic.partitions]
            )
            for topic in request.topics
        ]
        return response(topics=topics)


def end_of(index: int) -> ListOffsetsPartitionResponse:
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER if index == 7 else ErrorCode.NONE
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code, offset=100 + index)


class Cluster(SimpleNamespace):
    """The part of a broker that is needed to find high watermarks."""

    def __init__(self, leaders: Leaders) -> None:
        environment = SimpleNamespace(
            leader_elsewhere=lambda name: {"here": None, "t": LEADER, "other": OTHER}.get(name.topic)
        )
        super().__init__(share_groups=SimpleNamespace(environment=environment), anywhere=leaders)


def ends_of(leaders: Leaders) -> EndsElsewhere:
    return EndsElsewhere(cast(Broker, Cluster(leaders)))


async def test_each_leader_is_asked_for_what_it_leads() -> None:
    leaders = Leaders()
    names = [TopicPartition("t", 0), TopicPartition("here", 0), TopicPartition("other", 3), TopicPartition("t", 7)]
    ends = await ends_of(leaders).look(names)
    assert ends == {TopicPartition("t", 0): 100, TopicPartition("other", 3): 103}
    assert sorted(leaders.requests) == [(LEADER, 2), (OTHER, 1)]


async def test_many_partitions_are_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 10)
    monkeypatch.setattr(module, "MAX_ASKED_FOR", 25)
    leaders = Leaders()
    ends = await ends_of(leaders).look([TopicPartition("t", 10 + index) for index in range(40)])
    assert len(ends) == 25
    assert leaders.requests == [(LEADER, 10), (LEADER, 10), (LEADER, 5)]


async def test_a_leader_that_is_away_is_asked_by_the_next_scrape() -> None:
    leaders = Leaders()
    elsewhere = ends_of(leaders)
    leaders.is_away = True
    assert await elsewhere.look([TopicPartition("t", 0)]) == {}
    leaders.is_away = False
    assert await elsewhere.look([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 100}


async def test_a_silent_leader_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WITHIN_S", 0.01)
    leaders = Leaders()
    elsewhere = ends_of(leaders)
    leaders.is_silent = True
    for _ in range(3):
        assert await elsewhere.look([TopicPartition("t", 0)]) == {}
    assert leaders.requests == [(LEADER, 1)]
    elsewhere.close()
