"""Tests records that take long to validate: the effect on their connection and on others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.replica.partition import Partition
from protocol.api_key import ApiKey
from protocol.messages.produce import ProduceResponse
from tests.broker.following import acknowledge, follow
from tests.broker.inprocess import Client, InProcess, parse_by, request_frame
from tests.broker.produce.test_wire import LIE, LONG, batch, request
from tests.waiting import until

VERSION = 13


@pytest.fixture(params=["fast", "general"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "general":
        parse_by(monkeypatch, ApiKey.PRODUCE, None)


def ends(broker: InProcess) -> list[int]:
    return sorted(partition.log.log_end_offset for partition in broker.server.broker.replicas)


async def end_reached(broker: InProcess, offset: int) -> None:
    await until(lambda: max(ends(broker)) >= offset)


@pytest.mark.usefixtures("way")
async def test_the_buffer_that_they_came_in_is_read_into_meanwhile(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t", partitions=2)
        first, second = broker.client(), broker.client()
        first.send(request_frame(request(topic_id, (0, LONG), (1, batch())), VERSION))
        assert not first.wire.sent
        await second.ask(request(topic_id, (1, batch(300))), VERSION, ProduceResponse)
        assert await offsets(first) in ([0, 300], [0, 0])


async def offsets(client: Client) -> list[int]:
    (frame,) = await client.frames(1)
    from tests.broker.inprocess import decode_response

    answer = decode_response(frame, ApiKey.PRODUCE, VERSION, ProduceResponse)
    parts = answer.responses[0].partition_responses
    assert not any(part.error_code for part in parts)
    return [part.base_offset for part in parts]


@pytest.mark.usefixtures("way")
async def test_a_connections_requests_stay_in_their_order(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        frames = [request_frame(request(topic_id, (0, data)), VERSION) for data in (LONG, batch(3), LONG, batch())]
        client.send(b"".join(frames))
        await end_reached(broker, 6)
        partition = next(iter(broker.server.broker.replicas))
        sizes = [len(view) for view in partition.log.read(0, 1 << 30).parts]
        assert sum(sizes) == len(LONG) * 2 + len(batch(3)) + len(batch())


@pytest.mark.usefixtures("way")
async def test_they_are_appended_when_their_client_is_gone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        client.send(request_frame(request(topic_id, (0, LONG)), VERSION))
        client.connection.connection_lost(None)
        await end_reached(broker, 1)
    assert not client.wire.sent


async def test_a_producer_that_wants_no_answer_is_told_by_a_closed_connection(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        client.send(request_frame(request(topic_id, (0, LONG), acks=0), VERSION))
        await end_reached(broker, 1)
        client.send(request_frame(request(topic_id, (0, LIE), acks=0), VERSION))
        assert await client.frames(1) == []
        assert client.wire.closing


async def test_a_broker_that_stops_ends_what_has_begun(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        client = broker.client()
        client.send(request_frame(request(topic_id, (0, LONG)), VERSION))
        client.connection.connection_lost(None)
    assert ends(broker) == [1]


async def fetch_at_once(partition: Partition) -> None:
    """Acts as a follower that has fetched the records one turn of the event loop after their append."""
    while not partition.log_end_offset:  # noqa: ASYNC110 - a waiter would be told a turn later
        await asyncio.sleep(0)
    acknowledge(partition, partition.log_end_offset)


@pytest.mark.usefixtures("way")
async def test_they_are_answered_though_followers_fetch_them_before_their_connection_waits(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("t")
        (partition,) = broker.server.broker.replicas
        follow(partition)
        follower = asyncio.create_task(fetch_at_once(partition))
        client = broker.client()
        produce = request(topic_id, (0, LONG), acks=-1)
        produce.timeout_ms = 3_600_000
        client.send(request_frame(produce, VERSION))
        assert await offsets(client) == [0]
        await follower
