"""Tests the errors of coordinators whose logs are not replicated in time, API by API, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.offset_fetch import OffsetFetchResponse
from tests.broker.following import follow
from tests.group_requests import join_group, offset_commit, offset_fetch
from tests.simulation.broker_world import BrokerWorld, SimulatedConnection
from tests.simulation.virtual_time import run

COMMIT_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS = 700, 4_000
GROUP = "g"
OPTIONS = {
    "odradek.profile": "dev",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.commit.timeout.ms": str(COMMIT_TIMEOUT_MS),
    "group.initial.rebalance.delay.ms": "0",
}


async def commit(client: SimulatedConnection) -> int:
    answer = await client.ask(offset_commit(GROUP, {"t": {0: 5}}), 8, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


async def fetch(client: SimulatedConnection) -> int:
    """Fetches offsets after a commit, which the answer must contain."""
    await commit(client)
    answer = await client.ask(offset_fetch(GROUP), 8, OffsetFetchResponse)
    return answer.groups[0].error_code


async def join(client: SimulatedConnection) -> int:
    """Joins the group as its first member, which writes the group's record."""
    request = join_group(GROUP, session_ms=6_000, rebalance_ms=6_000)
    return (await client.ask(request, 3, JoinGroupResponse)).error_code


async def init_producer(client: SimulatedConnection) -> int:
    request = InitProducerIdRequest(transactional_id=GROUP, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    return (await client.ask(request, 4, InitProducerIdResponse)).error_code


Ask = Callable[[SimulatedConnection], Awaitable[int]]


async def error_within(ask: Ask, timeout_ms: int) -> int:
    """Returns the error code, which must arrive at the timeout, and not much later."""
    world = BrokerWorld(Random(1), OPTIONS)
    await world.start()
    await world.create_topic("t", 1)
    client = SimulatedConnection(world)
    for key_type in (0, 1):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[GROUP])
        await client.ask(request, 4, FindCoordinatorResponse)
    await asyncio.sleep(0.1)
    for partition in world.server.broker.replicas:
        if partition.name.topic.startswith("__"):
            follow(partition)  # by one who never has anything new
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    code = await ask(client)
    taken_ms = (loop.time() - began_s) * 1000
    assert timeout_ms <= taken_ms < timeout_ms + 100
    await world.stop()
    return code


@pytest.mark.parametrize(
    ("ask", "code", "timeout_ms"),
    [
        (commit, ErrorCode.COORDINATOR_NOT_AVAILABLE, COMMIT_TIMEOUT_MS),
        (fetch, ErrorCode.NOT_COORDINATOR, 2 * COMMIT_TIMEOUT_MS),
        (join, ErrorCode.COORDINATOR_NOT_AVAILABLE, COMMIT_TIMEOUT_MS),
        (init_producer, ErrorCode.COORDINATOR_NOT_AVAILABLE, TRANSACTION_TIMEOUT_MS),
    ],
)
def test_a_coordinator_that_cannot_commit_says_so_in_time(ask: Ask, code: ErrorCode, timeout_ms: int) -> None:
    assert run(lambda: error_within(ask, timeout_ms)) == code
