"""Sends every number of every request at its extremes: the broker answers, and logs no bug of its own."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from broker.handlers import APIS, NAMES
from protocol.api_key import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from protocol.types import uuid_to_text
from tests.broker.asking import FETCH_VERSION, batch, fetch, fetch_request, produce
from tests.broker.extremes import TOPIC, Extreme, extremes, without_answer
from tests.broker.inprocess import LONG_S, Client, InProcess, decode_response, request_frame
from tests.log_lines import Line, errors, log_lines

BYSTANDERS = "bystanders"
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": "1",
    **{
        f"{name}.{what}": "1"
        for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for what in ("num.partitions", "replication.factor")
    },
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
WRITTEN_TWICE = 2


class ExtremeBroker(InProcess):
    """A broker with topics, active groups and producers; every error that it logs fails the test."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, OPTIONS)
        self.bugs: list[str] = []
        self.counter = count()

    def read(self, line: Line) -> None:
        """Stores a line of the log."""
        if errors([line]):
            self.hear(line.event, line.fields)

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.hear("of the event loop", context))
        await super().__aenter__()
        return self

    def hear(self, event: str, fields: dict[str, Any]) -> None:
        error = fields.get("exc_info") or fields.get("exception")
        trace = "".join(traceback.format_exception(error)[-2:]) if isinstance(error, BaseException) else str(fields)
        self.bugs.append(f"{event}: {trace}")

    async def settle(self) -> bytes:
        """Waits until the topic exists, with two partitions of data; returns its id."""
        topic = self.server.broker.image.topic(TOPIC)
        if topic is not None and len(topic.partitions) > 1:
            return topic.topic_id
        assert topic is None, "nothing takes partitions away"
        topic_id = await self.create_topic(TOPIC, partitions=2)
        for _ in range(WRITTEN_TWICE):
            for partition in (0, 1):
                answer = await produce(self.client(), TOPIC, batch(b"x" * 100, b"y"), partition=partition)
                assert answer.error_code == 0
        return topic_id


async def furnish(broker: InProcess) -> None:
    """Loads the coordinators, and creates a group with a member, and a transactional id with a producer."""
    topic_id = uuid_to_text(await broker.create_topic(BYSTANDERS))
    client = broker.client()
    for kind, key in enumerate(("group", "transactional", f"sharing:{topic_id}:0")):
        await client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 6, FindCoordinatorResponse)
    await until_it_works(client, JOINING, 1, ConsumerGroupHeartbeatResponse)
    await until_it_works(client, SHARING, 1, ShareGroupHeartbeatResponse)
    await until_it_works(client, STREAMING, 1, StreamsGroupHeartbeatResponse)
    await until_it_works(client, PRODUCING, 4, InitProducerIdResponse)


async def until_it_works(client: Client, request: object, version: int, response: type) -> None:
    async with asyncio.timeout(LONG_S):
        while (await client.ask(request, version, response)).error_code:  # noqa: ASYNC110 (coordinators load meanwhile)
            await asyncio.sleep(0)


JOINING = ConsumerGroupHeartbeatRequest(
    group_id="group",
    member_id="member",
    member_epoch=0,
    rebalance_timeout_ms=10_000,
    subscribed_topic_names=[BYSTANDERS],
    topic_partitions=[],
)
SHARING = ShareGroupHeartbeatRequest(
    group_id="sharing", member_id="member", member_epoch=0, subscribed_topic_names=[BYSTANDERS]
)
STREAMING = StreamsGroupHeartbeatRequest(
    group_id="streaming",
    member_id="member",
    member_epoch=0,
    endpoint_information_epoch=0,
    rebalance_timeout_ms=10_000,
    topology=Topology(epoch=0, subtopologies=[]),
    active_tasks=[],
    standby_tasks=[],
    warmup_tasks=[],
)
PRODUCING = InitProducerIdRequest(transactional_id="transactional", transaction_timeout_ms=10_000)


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[ExtremeBroker]:
    broker = ExtremeBroker(directory)
    with log_lines(broker.read):
        async with broker as made:
            await furnish(made)
            made.bugs.clear()
            yield made
            assert not made.bugs


async def answered(client: Client, count: int) -> bool:
    """Waits for this number of answers; False if the connection was closed instead."""
    frames: list[bytes] = []
    async with asyncio.timeout(LONG_S):
        while len(frames) < count and not client.wire.closing:
            await asyncio.sleep(0)
            frames += client.wire.take()
    return len(frames) == count


async def send(made: ExtremeBroker, extreme: Extreme) -> str | None:
    """Sends the request and a valid request after it; returns what is wrong with the answers."""
    client = made.client()
    request = extreme.build(await made.settle())
    if isinstance(request, JoinGroupRequest):
        request.group_id = f"classic-{next(made.counter)}"  # whoever joins another's group waits for the other
    client.send(request_frame(request, extreme.version) + request_frame(ApiVersionsRequest(), 0))
    is_answered = await answered(client, 1 if without_answer(request) else 2)
    client.connection.connection_lost(None)
    problem = f"{extreme}: {' '.join(made.bugs) or 'the connection was closed'}"
    is_bug = bool(made.bugs) or not (is_answered or without_answer(request))
    made.bugs.clear()
    return problem if is_bug else None


@pytest.mark.parametrize("name", NAMES)
async def test_any_number_may_be_at_its_extremes(name: str, tmp_path: Path) -> None:
    api = APIS.find(ApiKey[name.upper()])
    assert api is not None
    wrong: list[str] = []
    async with world(tmp_path) as made:
        for version in range(api.versions.first, api.versions.last + 1):
            wrong += [problem for extreme in extremes(api.request, version) if (problem := await send(made, extreme))]
            assert (await produce(made.client(), BYSTANDERS, batch(b"a"))).error_code == 0
            assert (await fetch(made.client(), BYSTANDERS)).records
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("version", range(4, FETCH_VERSION + 1))
@pytest.mark.parametrize("min_bytes", [1, (1 << 31) - 1])
async def test_a_fetch_that_waits_as_long_as_can_be_said_is_answered_when_there_is_enough(
    version: int, min_bytes: int, tmp_path: Path
) -> None:
    async with world(tmp_path) as made:
        waiting = made.client()
        longest = fetch_request(BYSTANDERS, max_wait_ms=(1 << 31) - 1, min_bytes=min_bytes)
        waiting.send(request_frame(longest, version))
        await asyncio.sleep(0)
        assert not waiting.wire.sent
        assert (await produce(made.client(), BYSTANDERS, batch(b"a"))).error_code == 0
        if min_bytes == 1:
            (frame,) = await waiting.frames(1)
            answer = decode_response(frame, ApiKey.FETCH, version, FetchResponse)
            assert answer.responses[0].partitions[0].records
        assert (await fetch(made.client(), BYSTANDERS)).records


@pytest.mark.parametrize("version", range(4, FETCH_VERSION + 1))
@pytest.mark.parametrize("max_wait_ms", [-(1 << 31), -1, 0])
async def test_a_fetch_that_may_not_wait_is_answered_at_once(version: int, max_wait_ms: int, tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        request = fetch_request(BYSTANDERS, max_wait_ms=max_wait_ms, min_bytes=(1 << 31) - 1)
        answer = await made.client().ask(request, version, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == 0
