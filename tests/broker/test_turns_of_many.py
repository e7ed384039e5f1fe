"""Tests requests with many entries, of every API and version: no callback of the event loop handles all entries at
once.

The work of a callback is counted in lines of Python: it must not grow with the number of entries. Parts and turns have
few entries here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from broker.clock import SystemClock
from broker.dispatch import dispatcher, parts, route
from broker.dispatch.call import Call
from broker.fetch import fetch
from broker.handlers import APIS, alter_configs, delete_topics
from broker.handlers import fetch as fetch_handler
from broker.metadata import deciding
from broker.request import audit, turns
from broker.request.authorisation import DELETE_TOPIC
from broker.request.context import Principal
from coordinator.cluster import loader, machine
from protocol.api_key import ApiKey
from protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.doors import EVE, OPTIONS, furnished
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.many import Many, requests_of_many
from tests.callback_work import CallbackWork

ADMIN = Principal("User", "admin")
FEW, MANY = 100, 300
LINES_OF_ENTRY = 3.5
"""Lines that a callback may execute for each entry: two or three comprehensions, which take about fifty milliseconds
for 200,000 entries."""

WRITTEN_AS_ONE = ("WriteShareGroupStateRequest", ("topics", "partitions", "state_batches"))
"""The request and the array that count as a single entry, which has at most MAX_STATE_BATCHES."""

LIMITS = {
    (turns, "_TURN_NS"): 0,
    (turns, "ENTRIES"): 4,
    (parts, "PART_ENTRIES"): 8,
    (alter_configs, "PART_ENTRIES"): 8,
    (route, "LARGE_REQUEST_BYTES"): 64,
    (dispatcher, "MAX_BYTES_ON_LOOP"): 64,
    (route, "MAX_BYTES_ON_LOOP"): 64,
    (deciding, "MAX_ENTRIES_ON_LOOP"): 8,
    (machine, "MAX_RECORDS_AT_ONCE"): 8,
    (loader, "SLICE"): 8,
    (audit, "LINES_A_SECOND"): 0,
    (audit, "INTERVAL_MS"): 3_600_000,  # else a callback has the audit lines of the second before
}

NOT_HERE = frozenset({
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,  # parsed in place, with their own turns
    ApiKey.JOIN_GROUP,  # waits for other members
    ApiKey.STREAMS_GROUP_HEARTBEAT,  # a topology has a limited number of names, which are decided on together
    ApiKey.CREATE_ACLS,  # commits up to ten thousand records in one batch
})  # fmt: skip

NO_CREATION = {"auto.create.topics.enable": "false"}
"""Metadata creates no topics here, and neither does CreateTopics, which only validates."""

NO_DELAY = {"group.streams.initial.rebalance.delay.ms": "0"}
"""The tasks of a streams group are assigned before the requests, not in a callback during one of them."""


class Hashed(str):
    """A string that counts the calls of `hash` for all strings of its class."""

    __slots__ = ()
    hashes: ClassVar = 0

    def __hash__(self) -> int:
        Hashed.hashes += 1
        return super().__hash__()


pytestmark = pytest.mark.source_only


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for (module, name), limit in LIMITS.items():
        monkeypatch.setattr(module, name, limit)


@pytest.fixture
async def broker(tmp_path: Path, small_limits: None) -> AsyncIterator[tuple[InProcess, bytes]]:
    async with InProcess(tmp_path, {**OPTIONS, **NO_CREATION, **NO_DELAY}) as served:
        yield served, await furnished(served)


async def longest_callback(broker: InProcess, many: Many, count: int, principal: Principal, topic_id: bytes) -> int:
    return await longest_of(broker, request_frame(many.build(count, topic_id), many.version), principal)


async def longest_of(broker: InProcess, frame: bytes, principal: Principal) -> int:
    """Returns the lines of the longest callback while a request is answered."""
    client = broker.client()
    client.connection.principal = principal
    with CallbackWork() as work:
        client.send(frame)
        async with asyncio.timeout(LONG_S):
            await client.wire.answered.wait()
    client.connection.connection_lost(None)
    return work.longest


@pytest.mark.parametrize("principal", [ADMIN, EVE], ids=["permitted", "denied"])
async def test_no_callback_handles_all_entries_of_a_request(
    principal: Principal, broker: tuple[InProcess, bytes]
) -> None:
    served, topic_id = broker
    problems: list[str] = []
    for api in APIS:
        if api.key in NOT_HERE:
            continue
        for version in {api.versions.first, api.versions.last}:
            for many in requests_of_many(api.request, version):
                if (many.request.__name__, many.path) == WRITTEN_AS_ONE:
                    continue
                await longest_callback(served, many, 1, principal, topic_id)
                few, most = [await longest_callback(served, many, count, principal, topic_id) for count in (FEW, MANY)]
                if most - few > (MANY - FEW) * LINES_OF_ENTRY:
                    problems.append(f"{many}: {few} lines, {most} lines")
    assert not problems, "\n".join(problems)


async def test_no_callback_creates_all_topics_of_a_metadata_request(tmp_path: Path, small_limits: None) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        lines = []
        for count in (1, FEW, MANY):
            topics = [MetadataRequestTopic(name=f"not a topic's name {number}") for number in range(count)]
            lines.append(await longest_of(served, request_frame(MetadataRequest(topics=topics), 1), ADMIN))
    assert lines[2] - lines[1] <= (MANY - FEW) * LINES_OF_ENTRY


async def test_no_turn_hashes_all_names_that_are_authorized(small_limits: None) -> None:
    """Python doesn't count this as lines, but each hash is computed from all characters."""
    host: Any = SimpleNamespace(authorizer=SimpleNamespace(allows=lambda *_, **__: False), clock=SystemClock())
    context: Any = SimpleNamespace(version=6)
    names = [Hashed(number) for number in range(MANY)]
    longest, before = 0, 0
    permitted = asyncio.ensure_future(Call(delete_topics.API, context, host, None).permitted(DELETE_TOPIC, names))
    while not permitted.done():
        await asyncio.sleep(0)
        longest, before = max(longest, Hashed.hashes - before), Hashed.hashes
    assert await permitted == set()
    assert Hashed.hashes >= MANY
    assert longest < MANY // 10


async def test_no_callback_collects_all_topics_of_a_directory(broker: tuple[InProcess, bytes]) -> None:
    """The lines that collect a topic call slow functions of Python's own."""
    served, topic_id = broker
    many = Many(AlterReplicaLogDirsRequest, 2, ("dirs", "topics"), is_distinct=True)
    lines = [await longest_callback(served, many, count, ADMIN, topic_id) for count in (1, FEW, MANY)]
    assert lines[2] - lines[1] < MANY - FEW


@pytest.mark.parametrize("epoch", [0, -1], ids=["new session", "no session"])
async def test_no_callback_accepts_all_topics_of_a_fetch(
    epoch: int, broker: tuple[InProcess, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request names each topic twice. Its session begins in turns, too."""
    served, _ = broker
    for module in (fetch, fetch_handler):
        monkeypatch.setattr(module, "MANY_PARTITIONS", 8)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    lines = []
    for count in (1, FEW, MANY):
        topics = [
            FetchTopic(topic_id=(number + 1).to_bytes(16, "big"), partitions=[partition]) for number in range(count)
        ]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=epoch, topics=topics * 2)
        lines.append(await longest_of(served, request_frame(request, 17), ADMIN))
    assert lines[2] - lines[1] <= (MANY - FEW) * LINES_OF_ENTRY
