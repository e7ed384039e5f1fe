"""Tests the quota of changes to the cluster: a change beyond it is rejected, or made and throttled, depending on the
version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.dispatch.call import Call
from broker.dispatch.host import Forwarding
from broker.dispatch.route import Route
from broker.handlers import create_topics
from broker.request.context import ClientConnection, Context
from protocol.api_key import ApiKey
from protocol.codec import encode
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame
from tests.broker.test_client_quotas import limit
from tests.broker.test_forwarding_configs import forwarding_host
from tests.coordinator.cluster.given import creatable

RATE = 0.2
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
OPTIONS = {"controller.quota.window.num": "2"}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await limit(broker, "controller_mutation_rate", RATE)
        yield broker


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[creatable(name, partitions, 1)], timeout_ms=1000)


async def created(client: Client, name: str, partitions: int = 10, version: int = 7) -> CreateTopicsResponse:
    return await client.ask(creation(name, partitions), version, CreateTopicsResponse)


async def overdraw(broker: InProcess) -> None:
    """Takes ten tokens from a full bucket of less than one, which is allowed."""
    response = await created(broker.client(), "first")
    assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)


async def test_a_topic_beyond_the_quota_is_refused_and_the_connection_waits(broker: InProcess) -> None:
    await overdraw(broker)
    client = broker.client()
    refused = await created(client, "second", 1)
    assert refused.topics[0].error_code == EXCEEDED
    assert 40_000 < refused.throttle_time_ms <= 50_000
    assert not client.connection.is_read_from
    assert broker.server.broker.image.topic("second") is None


@pytest.mark.parametrize("version", [2, 4, 5])
async def test_a_client_that_does_not_know_the_error_gets_its_topic_and_waits(broker: InProcess, version: int) -> None:
    client = broker.client()
    response = await created(client, "first", version=version)
    assert not response.topics[0].error_code
    assert 40_000 < response.throttle_time_ms <= 50_000
    assert not client.connection.is_read_from


async def test_partitions_are_added_and_topics_deleted_out_of_the_same_bucket(broker: InProcess) -> None:
    await overdraw(broker)
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="first", count=11, assignments=None)], timeout_ms=1000, validate_only=False
    )
    strict = await broker.client().ask(more, 3, CreatePartitionsResponse)
    assert strict.results[0].error_code == EXCEEDED
    assert strict.throttle_time_ms
    permissive = await broker.client().ask(more, 2, CreatePartitionsResponse)
    assert not permissive.results[0].error_code
    assert permissive.throttle_time_ms
    away = DeleteTopicsRequest(topic_names=["first"], timeout_ms=1000)
    refused = await broker.client().ask(away, 5, DeleteTopicsResponse)
    assert refused.responses[0].error_code == EXCEEDED
    assert refused.throttle_time_ms
    gone = await broker.client().ask(away, 4, DeleteTopicsResponse)
    assert not gone.responses[0].error_code
    assert gone.throttle_time_ms > refused.throttle_time_ms


async def test_a_topic_that_is_asked_for_is_not_made_beyond_the_quota(broker: InProcess) -> None:
    await overdraw(broker)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="asked-for")])
    answer = await broker.client().ask(request, 12, MetadataResponse)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.server.broker.image.topic("asked-for") is None


async def test_who_has_no_quota_is_not_charged(broker: InProcess) -> None:
    await limit(broker, "controller_mutation_rate", None)
    for name in ("first", "second"):
        response = await created(broker.client(), name)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)


async def test_a_client_of_another_broker_is_told_in_the_answer_itself(broker: InProcess) -> None:
    await overdraw(broker)
    elsewhere = ClientConnection("CONTROLLER", lambda _, answer: answer)
    frame = memoryview(request_frame(creation("second", 1), 7))[4:]
    answer: Any = broker.server.listeners[0].answer(elsewhere, frame)
    if not isinstance(answer, list):
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.begin(ended.set_result)
        answer = await ended
    response = decode_response(b"".join(answer)[4:], ApiKey.CREATE_TOPICS, 7, CreateTopicsResponse)
    assert response.topics[0].error_code == EXCEEDED
    assert 40_000 < response.throttle_time_ms <= 50_000


async def test_whom_a_controller_elsewhere_throttles_this_broker_has_wait() -> None:
    async def forward(request: object, version: int, requester: object) -> bytes:
        return encode(CreateTopicsResponse(throttle_time_ms=1_234, topics=[]), version)

    async def none_rejected(_: object) -> dict[int, object]:
        return {}

    host = forwarding_host(Forwarding(forward, none_rejected))
    connection = ClientConnection("PLAINTEXT", lambda _, answer: answer)
    context = Context(connection, ApiKey.CREATE_TOPICS, 7, 0, "c", 0)
    await Route(create_topics.API, host).handled(Call(create_topics.API, context, host, creation("a", 1)), 0)
    assert context.throttle_ms == 1_234
