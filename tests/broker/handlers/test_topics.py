"""Tests CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords, as clients see them. The cluster's tests have
the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.types import NO_UUID
from tests.broker.asking import batch, fetch, produce
from tests.broker.inprocess import Client, InProcess


def new_topic(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])


@pytest.mark.parametrize("version", range(8))
async def test_a_topic_can_be_written_to_once_it_is_created(version: int, client: Client) -> None:
    request = CreateTopicsRequest(topics=[new_topic("t", 2)], timeout_ms=1000)
    answer = await client.ask(request, version, CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE
    assert (await produce(client, "t", batch(b"a"), partition=1)).base_offset == 0


async def test_what_was_created_is_told(client: Client) -> None:
    request = CreateTopicsRequest(topics=[new_topic("t", 2)], timeout_ms=1000)
    (topic,) = (await client.ask(request, 7, CreateTopicsResponse)).topics
    assert (topic.num_partitions, topic.replication_factor) == (2, 1)
    assert topic.topic_id != NO_UUID
    assert {config.name: config.value for config in topic.configs or []}["cleanup.policy"] == "delete"


async def test_validation_creates_nothing(client: Client) -> None:
    request = CreateTopicsRequest(topics=[new_topic("t")], timeout_ms=1000, validate_only=True)
    assert (await client.ask(request, 7, CreateTopicsResponse)).topics[0].error_code == ErrorCode.NONE
    assert (await produce(client, "t", batch(b"a"))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_each_topic_fails_on_its_own(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    request = CreateTopicsRequest(topics=[new_topic("t"), new_topic("u"), new_topic("a b")], timeout_ms=1000)
    answer = await client.ask(request, 7, CreateTopicsResponse)
    assert {topic.name: (topic.error_code, topic.error_message) for topic in answer.topics} == {
        "t": (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists."),
        "u": (ErrorCode.NONE, None),
        "a b": (
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
    }


async def test_a_deleted_topic_is_gone_and_may_be_made_anew(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a"))
    for version, request in (
        (3, DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)),
        (6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=NO_UUID)], timeout_ms=1000)),
    ):
        answer = await client.ask(request, version, DeleteTopicsResponse)
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert (await fetch(client, "t")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await broker.create_topic("t")
        assert (await fetch(client, "t")).high_watermark == 0


async def test_topics_are_deleted_by_id(broker: InProcess, client: Client) -> None:
    topic_id = await broker.create_topic("t")
    states = [DeleteTopicState(name=None, topic_id=topic) for topic in (topic_id, b"\7" * 16)]
    answer = await client.ask(DeleteTopicsRequest(topics=states, timeout_ms=1000), 6, DeleteTopicsResponse)
    assert [(topic.name, topic.error_code) for topic in answer.responses] == [
        ("t", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


async def test_new_partitions_can_be_written_to(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    for count, code in ((3, ErrorCode.NONE), (2, ErrorCode.INVALID_PARTITIONS)):
        topics = [CreatePartitionsTopic(name="t", count=count, assignments=None)]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)
        answer = await client.ask(request, 3, CreatePartitionsResponse)
        assert answer.results[0].error_code == code
    assert (await produce(client, "t", batch(b"a"), partition=2)).base_offset == 0


async def delete_up_to(client: Client, topic: str, *offsets: int) -> tuple[int, int]:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000)
    (topic_result,) = (await client.ask(request, 2, DeleteRecordsResponse)).topics
    (result,) = topic_result.partitions
    return result.error_code, result.low_watermark


async def test_deleted_records_cannot_be_read(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", b"b", b"c"))
    assert await delete_up_to(client, "t", 2) == (ErrorCode.NONE, 2)
    assert (await fetch(client, "t", 1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await fetch(client, "t", 2)).log_start_offset == 2
    assert await delete_up_to(client, "t", -1) == (ErrorCode.NONE, 3)


async def test_a_partition_named_twice_is_cut_where_it_was_named_last(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", b"b", b"c"))
    assert await delete_up_to(client, "t", 3, 1) == (ErrorCode.NONE, 1)


async def test_records_that_may_not_be_deleted(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", cleanup_policy="compact")
    assert await delete_up_to(client, "t", -1) == (ErrorCode.POLICY_VIOLATION, -1)
    assert await delete_up_to(client, "nowhere", -1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    await broker.create_topic("u")
    assert await delete_up_to(client, "u", 1) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (5, 73)]
)
async def test_a_broker_that_deletes_no_topics_says_so(tmp_path: Path, version: int, code: int) -> None:
    async with InProcess(tmp_path, {"delete.topic.enable": "false"}) as broker:
        request = DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=1000)
        answer = await broker.client().ask(request, version, DeleteTopicsResponse)
    assert [(topic.name, topic.error_code) for topic in answer.responses] == [("t", code), ("u", code)]
