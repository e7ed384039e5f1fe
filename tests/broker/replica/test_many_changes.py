"""Tests a commit of many records: no callback of the event loop does the work of all of them.

The work of a callback is counted in lines of Python. The image applies all records at once, with few lines for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from broker.metadata import deciding
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.asking import batch, produce
from tests.broker.inprocess import LONG_S, request_frame
from tests.broker.replica.test_many_partitions import OPTIONS, Slowly
from tests.callback_work import CallbackWork

FEW, MANY = 50, 150
LINES_OF_RECORD = 60
"""Lines that a callback may execute for each record: to apply it to the image, and to skip it in each subscriber."""

Case = Callable[[Slowly, int], Awaitable[int]]

pytestmark = pytest.mark.source_only


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Slowly]:
    monkeypatch.setattr(deciding, "MAX_ENTRIES_ON_LOOP", 8)
    async with Slowly(tmp_path / "data", OPTIONS) as broker:
        request = FindCoordinatorRequest(key="g", key_type=0)
        await broker.client().ask(request, 3, FindCoordinatorResponse)
        yield broker


async def longest_callback(broker: Slowly, request: object, version: int) -> int:
    client = broker.client()
    frame = request_frame(request, version)
    with CallbackWork() as work:
        client.send(frame)
        async with asyncio.timeout(LONG_S):
            await client.wire.answered.wait()
    return work.longest


async def create_one_of_many_partitions(broker: Slowly, count: int) -> int:
    topic = CreatableTopic(name=f"of-{count}", num_partitions=count, replication_factor=1, assignments=[], configs=[])
    return await longest_callback(broker, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)


async def delete_one_of_many_partitions(broker: Slowly, count: int) -> int:
    await broker.create_topic(f"of-{count}", count)
    return await longest_callback(broker, DeleteTopicsRequest(topic_names=[f"of-{count}"], timeout_ms=60_000), 5)


async def delete_many_topics(broker: Slowly, count: int) -> int:
    names = [f"of-{count}-{i}" for i in range(count)]
    for name in names:
        await broker.create_topic(name)
    return await longest_callback(broker, DeleteTopicsRequest(topic_names=names, timeout_ms=60_000), 5)


async def configure_one_of_many_partitions(broker: Slowly, count: int) -> int:
    await broker.create_topic(f"of-{count}", count)
    config = AlterableConfig(name="retention.ms", config_operation=0, value="12345")
    resource = AlterConfigsResource(resource_type=2, resource_name=f"of-{count}", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    longest = await longest_callback(broker, request, 1)
    partitions = broker.replicas.topic(f"of-{count}").values()
    assert {partition.log.config.retention_ms for partition in partitions} == {12345}
    return longest


@pytest.mark.parametrize(
    "case",
    [
        create_one_of_many_partitions,
        delete_one_of_many_partitions,
        delete_many_topics,
        configure_one_of_many_partitions,
    ],
)
async def test_no_callback_applies_all_changes(case: Case, broker: Slowly) -> None:
    few, most = [await case(broker, count) for count in (FEW, MANY)]
    assert most - few < (MANY - FEW) * LINES_OF_RECORD, (few, most)


async def test_a_deletion_is_answered_when_all_logs_are_deleted(broker: Slowly, tmp_path: Path) -> None:
    await delete_one_of_many_partitions(broker, MANY)
    assert not broker.replicas.topic(f"of-{MANY}")
    assert len([*(tmp_path / "data").glob(f"of-{MANY}-*-delete")]) == MANY


async def test_a_topic_is_created_again_while_its_logs_are_deleted(broker: Slowly) -> None:
    await broker.create_topic("t", MANY)
    deleting, client = broker.client(), broker.client()
    assert (await produce(client, "t", batch(b"a"), partition=MANY - 1)).base_offset == 0
    deleting.send(request_frame(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5))
    while broker.server.broker.image.topic("t") is not None:  # noqa: ASYNC110 (the loop is the clock)
        await asyncio.sleep(0)
    assert len(broker.replicas.topic("t")) > MANY // 2
    await broker.create_topic("t", MANY)
    for index in (0, MANY - 1):
        answer = await produce(client, "t", batch(b"a"), partition=index)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


async def test_a_stop_deletes_the_rest(tmp_path: Path) -> None:
    async with Slowly(tmp_path, OPTIONS) as broker:
        await broker.create_topic("t", MANY)
        broker.client().send(request_frame(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5))
        while broker.server.broker.image.topic("t") is not None:  # noqa: ASYNC110 (the loop is the clock)
            await asyncio.sleep(0)
        assert len(broker.replicas.topic("t")) > MANY // 2
    assert len([*tmp_path.glob("t-*-delete")]) == MANY  # noqa: ASYNC240
