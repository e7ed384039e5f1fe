"""Tests a Fetch of many partitions, which is served in turns: other connections are served between them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.fetch.fetch import MANY_PARTITIONS
from broker.request import turns
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.asking import batch
from tests.broker.call_counter import CallCounter
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame
from tests.waiting import until

FETCH = 1
MANY = 2 * MANY_PARTITIONS
VERSIONS = (3, 4, 11, 12)
LONG_MS = 30_000


@pytest.fixture(autouse=True)
def turns_that_end_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends each turn at once, so that the tests don't depend on the machine's speed."""
    monkeypatch.setattr(turns, "_TURN_NS", 0)


def fetch_of_many(wait_ms: int, session_id: int = 0, session_epoch: int = -1) -> FetchRequest:
    """Returns the fetch of a partition that exists, and of many that don't exist."""
    partitions = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(MANY)]
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, session_id=session_id, session_epoch=session_epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)] if session_epoch <= 0 else [], forgotten_topics_data=[],
    )  # fmt: skip


def codes(response: FetchResponse) -> list[int]:
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


@pytest.mark.parametrize("version", VERSIONS)
async def test_others_have_their_turn_while_many_partitions_are_read(version: int, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("t")
        client = broker.client()
        client.send(request_frame(fetch_of_many(0), version))
        calls: list[int] = []
        async with asyncio.timeout(LONG_S):
            while not client.wire.sent:
                with CallCounter() as counter:
                    await asyncio.sleep(0)
                calls.append(counter.calls)
        (frame,) = await client.frames(1)
        answered = codes(decode_response(frame, FETCH, version, FetchResponse))
        assert answered == [ErrorCode.NONE, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - 1)]
        assert max(calls) < sum(calls) / 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fetch_of_many_partitions_waits_for_records(version: int, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("t")
        consumer, producer = broker.client(), broker.client()
        consumer.send(request_frame(fetch_of_many(LONG_MS), version))
        (partition,) = broker.server.broker.replicas
        await until(lambda: partition.waiters)
        assert not consumer.wire.sent
        data = PartitionProduceData(index=0, records=batch(b"a"))
        topic = TopicProduceData(name="t", partition_data=[data])
        producer.send(request_frame(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9))
        (frame,) = await consumer.frames(1)
        assert decode_response(frame, FETCH, version, FetchResponse).responses[0].partitions[0].records
        assert not partition.waiters


async def test_a_session_of_many_partitions_serves_one_fetch_at_a_time(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("t")
        client, other = broker.client(), broker.client()
        opened = await client.ask(fetch_of_many(0, session_epoch=0), 12, FetchResponse)
        client.send(request_frame(fetch_of_many(0, opened.session_id, 1), 12))
        refused = await other.ask(fetch_of_many(0, opened.session_id, 2), 12, FetchResponse)
        assert refused.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        (frame,) = await client.frames(1)
        assert len(codes(decode_response(frame, FETCH, 12, FetchResponse))) == MANY - 1
        assert not (await client.ask(fetch_of_many(0, opened.session_id, 2), 12, FetchResponse)).error_code


async def test_a_client_that_leaves_frees_its_session(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        await broker.create_topic("t")
        client, other = broker.client(), broker.client()
        opened = await client.ask(fetch_of_many(0, session_epoch=0), 12, FetchResponse)
        client.send(request_frame(fetch_of_many(LONG_MS, opened.session_id, 1), 12))
        client.connection.connection_lost(None)
        (session,) = broker.server.broker.fetches.sessions.sessions.values()
        await until(lambda: not session.is_at_work)
        assert not (await other.ask(fetch_of_many(0, opened.session_id, 2), 12, FetchResponse)).error_code
