"""Tests the interceptors: every answer passes them once, however it was made, with the context of its request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.request.context import ANONYMOUS, AnswerBuffers, Context
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.fetch import FetchResponse
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.metadata import MetadataRequest
from tests.broker.fetch.test_wire import ALL
from tests.broker.fetch.test_wire import request as fetch_request
from tests.broker.inprocess import CORRELATION_ID, Client, InProcess, decode_response, request_frame
from tests.broker.produce.test_wire import batch
from tests.broker.produce.test_wire import request as produce_request
from tests.group_requests import join_group

LONG_MS = 60_000
DELETION_MS = 2_000
"""Longer than the deletion of a topic takes on a busy machine."""

WAIT_MS = 300
"""Long enough for a topic to be deleted meanwhile."""
NEW = CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])


class Watched:
    """A broker, a client, and the answers that passed the interceptors."""

    def __init__(self, broker: InProcess) -> None:
        self.broker = broker
        self.client = broker.client()
        self.passed: list[tuple[Context, AnswerBuffers]] = []
        broker.server.broker.interceptors.add(self.watch)

    def watch(self, context: Context, answer: AnswerBuffers) -> None:
        self.passed.append((context, answer))

    def take(self) -> list[tuple[ApiKey, int, int]]:
        """Returns API, version and size of the answers since the last call."""
        passed = [(ApiKey(one.key), one.version, sum(map(len, sent or ()))) for one, sent in self.passed]
        self.passed.clear()
        return passed


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with InProcess(tmp_path, {"group.initial.rebalance.delay.ms": "50"}) as broker:
        yield Watched(broker)


def waiting(topic_id: bytes, **fields: object) -> object:
    """Returns a Fetch that waits at the end of an empty partition."""
    return fetch_request(topic_id, (1, 0, ALL), wait_ms=LONG_MS, **fields)


async def sent_size(client: Client, request: object, version: int) -> int:
    """Returns the size of the answer on the wire, without the size field."""
    client.send(request_frame(request, version))
    (frame,) = await client.frames(1)
    return len(frame)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
        (MetadataRequest(topics=[]), 12),
        (ListGroupsRequest(), 4),
        (DescribeGroupsRequest(groups=["none"]), 5),
        (HeartbeatRequest(group_id="none", generation_id=1, member_id="m"), 4),
        (
            CreateTopicsRequest(
                topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])],
                timeout_ms=1000,
            ),
            7,
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
async def test_an_answer_of_the_general_way_passes_once(watched: Watched, request_: object, version: int) -> None:
    size = await sent_size(watched.client, request_, version)
    assert [(passed[1], passed[2]) for passed in watched.take()] == [(version, 4 + size)]


async def test_answers_of_the_short_cuts_pass_once(watched: Watched) -> None:
    topic_id = await watched.broker.create_topic("t", partitions=2)
    watched.take()
    produced = await sent_size(watched.client, produce_request(topic_id, (0, batch(3))), 13)
    fetched = await sent_size(watched.client, fetch_request(topic_id, (0, 0, ALL)), 13)
    assert watched.take() == [(ApiKey.PRODUCE, 13, 4 + produced), (ApiKey.FETCH, 13, 4 + fetched)]


@pytest.mark.parametrize("version", [11, 13], ids=["general way", "short cut"])
async def test_an_answer_that_waited_passes_once_it_is_there(watched: Watched, version: int) -> None:
    topic_id = await watched.broker.create_topic("t", partitions=2)
    consumer = watched.broker.client()
    consumer.send(request_frame(waiting(topic_id), version))
    await asyncio.sleep(0)
    watched.take()
    await sent_size(watched.client, produce_request(topic_id, (1, batch(3))), 13)
    (frame,) = await consumer.frames(1)
    assert [one for one in watched.take() if one[0] is ApiKey.FETCH] == [(ApiKey.FETCH, version, 4 + len(frame))]


async def test_an_answer_of_a_handler_that_waited_passes_once_it_is_there(watched: Watched) -> None:
    size = await sent_size(watched.client, join_group("g"), 3)
    assert watched.take() == [(ApiKey.JOIN_GROUP, 3, 4 + size)]


async def test_who_wants_no_answer_passes_without_one(watched: Watched) -> None:
    topic_id = await watched.broker.create_topic("t")
    watched.take()
    watched.client.send(request_frame(produce_request(topic_id, (0, batch()), acks=0), 13))
    assert watched.take() == [(ApiKey.PRODUCE, 13, 0)]


async def test_a_version_that_is_not_served_is_answered_and_passes(watched: Watched) -> None:
    frame = bytearray(request_frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3))
    frame[6:8] = b"\x00\x7f"
    watched.client.send(bytes(frame))
    await watched.client.frames(1)
    assert [passed[:2] for passed in watched.take()] == [(ApiKey.API_VERSIONS, 0)]


async def test_a_request_s_context_says_whose_it_is_and_since_when(watched: Watched) -> None:
    before_ns = watched.broker.server.broker.clock.monotonic_ns()
    await sent_size(watched.client, MetadataRequest(topics=[]), 12)
    ((context, _),) = watched.passed
    assert (context.client_id, context.listener, context.peer) == ("test", "PLAINTEXT", "127.0.0.1:1")
    assert (context.principal, str(context.principal)) == (ANONYMOUS, "User:ANONYMOUS")
    assert context.correlation_id == CORRELATION_ID
    assert context.size_bytes == len(request_frame(MetadataRequest(topics=[]), 12)) - 4
    assert before_ns <= context.started_ns <= watched.broker.server.broker.clock.monotonic_ns()


async def test_one_that_waits_beside_a_topic_that_is_deleted_waits_no_longer_than_it_wants_to(watched: Watched) -> None:
    """When the request arrived, the topic's id led to a name; now no topic has that name."""
    first, second = [await watched.broker.create_topic(name, partitions=2) for name in ("t", "u")]
    both = fetch_request(first, (1, 0, ALL), wait_ms=DELETION_MS)
    both.topics += fetch_request(second, (1, 0, ALL)).topics
    consumer = watched.broker.client()
    consumer.send(request_frame(both, 13))
    await asyncio.sleep(0)
    await sent_size(watched.client, DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 5)
    assert not consumer.wire.sent
    (frame,) = await consumer.frames(1)
    answer = decode_response(frame, ApiKey.FETCH, 13, FetchResponse)
    assert [topic.partitions[0].error_code for topic in answer.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
