"""Tests that a Produce that waits for other replicas lets the next one begin; all are answered in order."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import Clock
from broker.network.in_flight import MAX_IN_FLIGHT
from broker.replica.partition import Partition
from coordinator.replication.roles import Following
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.broker.following import acknowledge, follow
from tests.broker.inprocess import Client, InProcess, decode_response, parse_by, request_frame
from tests.broker.produce.test_wire import BAD_CRC, batch, request
from tests.broker.test_listener import HELLO, all_frames
from tests.clock import ManualClock

ALL = -1
VERSION = 13
HELLO_FRAME = request_frame(HELLO, 3)


class Replicated:
    """A broker that leads partitions with a follower on another broker."""

    def __init__(self, broker: InProcess, topic_id: bytes) -> None:
        self.broker = broker
        self.topic_id = topic_id
        self.client = broker.client()
        self.partitions = {one.name.partition: one for one in broker.server.broker.replicas if one.name.topic == "t"}

    def frame(self, index: int = 0, records: bytes | None = None, timeout_ms: int = 60_000) -> bytes:
        produced: ProduceRequest = request(self.topic_id, (index, records or batch()), acks=ALL)
        produced.timeout_ms = timeout_ms
        return request_frame(produced, VERSION)

    def commit(self, index: int = 0) -> None:
        partition = self.partitions[index]
        acknowledge(partition, partition.log_end_offset)

    async def answers(self, count: int) -> list[tuple[int, int]]:
        """Returns the next answers: error and base offset of each."""
        frames = await all_frames(self.client, count)
        decoded = [decode_response(frame, ApiKey.PRODUCE, VERSION, ProduceResponse) for frame in frames]
        parts = [answer.responses[0].partition_responses[0] for answer in decoded]
        return [(part.error_code, part.base_offset) for part in parts]


@asynccontextmanager
async def replicated(directory: Path, clock: Clock | None = None, **configs: str) -> AsyncIterator[Replicated]:
    """Yields a leader with a follower. With a `clock` that stands still, the time of a connection's turn never ends."""
    async with InProcess(directory, clock=clock) as broker:
        topic_id = await broker.create_topic("t", partitions=2, **configs)
        cluster = Replicated(broker, topic_id)
        for partition in cluster.partitions.values():
            follow(partition)
        yield cluster


async def turns(count: int = 4) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_commit_answers_all_that_wait_for_it(tmp_path: Path) -> None:
    async with replicated(tmp_path, ManualClock()) as cluster:
        cluster.client.send(cluster.frame() * 3)
        assert cluster.partitions[0].log_end_offset == 3
        await turns()
        assert not cluster.client.wire.sent
        cluster.commit()
        assert await cluster.answers(3) == [(0, 0), (0, 1), (0, 2)]


async def test_no_more_begin_than_an_idempotent_producer_sends(tmp_path: Path) -> None:
    async with replicated(tmp_path, ManualClock()) as cluster:
        cluster.client.send(cluster.frame() * (MAX_IN_FLIGHT + 2))
        assert cluster.partitions[0].log_end_offset == MAX_IN_FLIGHT
        cluster.commit()
        assert len(await cluster.answers(MAX_IN_FLIGHT)) == MAX_IN_FLIGHT
        await turns()
        cluster.commit()
        assert await cluster.answers(2) == [(0, MAX_IN_FLIGHT), (0, MAX_IN_FLIGHT + 1)]


async def test_what_is_committed_first_is_answered_in_its_turn(tmp_path: Path) -> None:
    async with replicated(tmp_path, ManualClock()) as cluster:
        cluster.client.send(cluster.frame(0) + cluster.frame(1) + cluster.frame(0))
        cluster.commit(1)
        await turns()
        assert not cluster.client.wire.sent
        acknowledge(cluster.partitions[0], 1)
        assert await cluster.answers(2) == [(0, 0), (0, 0)]
        cluster.commit(0)
        assert await cluster.answers(1) == [(0, 1)]


async def test_one_that_is_refused_behind_others_is_answered_behind_them(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame() + cluster.frame(records=BAD_CRC) + cluster.frame())
        await turns()
        assert not cluster.client.wire.sent
        cluster.commit()
        assert await cluster.answers(3) == [(0, 0), (ErrorCode.CORRUPT_MESSAGE, -1), (0, 1)]


async def test_another_request_waits_for_all_of_them(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame() + HELLO_FRAME + cluster.frame() * 2)
        assert cluster.partitions[0].log_end_offset == 1
        cluster.commit()
        await turns()
        assert cluster.partitions[0].log_end_offset == 3
        cluster.commit()
        assert len(await all_frames(cluster.client, 4)) == 4


async def test_requests_that_come_one_after_the_other_begin_too(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        for _ in range(3):
            cluster.client.send(cluster.frame())
        frame = cluster.frame()
        cluster.client.send(frame[:50])
        cluster.client.send(frame[50:])
        assert cluster.partitions[0].log_end_offset == 4
        assert cluster.client.wire.reading
        cluster.commit()
        assert len(await cluster.answers(4)) == 4


async def test_one_whose_time_is_over_behind_others_is_told_so_behind_them(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame(0) + cluster.frame(1, timeout_ms=1))
        await asyncio.sleep(0.02)
        assert not cluster.client.wire.sent
        cluster.commit(0)
        assert await cluster.answers(2) == [(0, 0), (ErrorCode.REQUEST_TIMED_OUT, 0)]


async def test_a_bad_request_behind_others_closes_the_connection_once_they_are_answered(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        torn = cluster.frame()[:-1]
        bad = struct.pack(">i", len(torn) - 4) + torn[4:]
        cluster.client.send(cluster.frame() + bad + cluster.frame())
        await turns()
        assert not cluster.client.wire.is_closing()
        cluster.commit()
        assert await cluster.answers(1) == [(0, 0)]
        assert cluster.client.wire.is_closing()
        assert cluster.partitions[0].log_end_offset == 1


async def test_a_size_that_cannot_be_closes_the_connection_once_they_are_answered(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame() * 2 + struct.pack(">i", -1))
        await turns()
        assert not cluster.client.wire.is_closing()
        cluster.commit()
        assert await cluster.answers(2) == [(0, 0), (0, 1)]
        assert cluster.client.wire.is_closing()


@pytest.mark.parametrize(
    "end", [lambda client: client.connection.connection_lost(None), lambda client: client.connection.close()]
)
async def test_the_end_of_the_connection_gives_all_of_them_up(end: Callable[[Client], None], tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame() * 3)
        end(cluster.client)
        assert not any(partition.waiters for partition in cluster.partitions.values())
        cluster.commit()
        await turns()
        assert not cluster.client.wire.sent


async def test_all_of_them_hear_that_another_broker_leads(tmp_path: Path) -> None:
    async with replicated(tmp_path, ManualClock()) as cluster:
        cluster.client.send(cluster.frame() * 3)
        partition = cluster.partitions[0]
        partition.become(Following(2, partition.leader_epoch + 1, partition.role.partition_epoch + 1), 0)
        assert await cluster.answers(3) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, offset) for offset in range(3)]


async def test_a_connection_that_waits_for_commits_is_not_idle(tmp_path: Path) -> None:
    async with replicated(tmp_path) as cluster:
        cluster.client.send(cluster.frame())
        for _ in range(3):
            cluster.client.connection.close_if_idle()
        assert not cluster.client.wire.is_closing()


def leads_elsewhere(partition: Partition) -> None:
    partition.become(Following(2, partition.leader_epoch + 1, partition.role.partition_epoch + 1), 0)


def commits(partition: Partition) -> None:
    acknowledge(partition, partition.log_end_offset)


def nothing(partition: Partition) -> None:
    pass


@pytest.mark.parametrize("then", [commits, leads_elsewhere, nothing])
@pytest.mark.parametrize("version", [9, 12, 13])
async def test_both_ways_answer_the_same(
    then: Callable[[Partition], None], version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast_way = await answer(tmp_path / "fast", version, then)
    parse_by(monkeypatch, ApiKey.PRODUCE, None)
    assert fast_way == await answer(tmp_path / "general", version, then)


async def answer(directory: Path, version: int, then: Callable[[Partition], None]) -> bytes:
    """Returns the answer to an append, to a rejected append, and to an append after which something happens."""
    async with replicated(directory) as cluster:
        produced = request(cluster.topic_id, (0, batch(2)), (1, BAD_CRC), (1, batch()), acks=ALL)
        produced.timeout_ms = 5
        cluster.client.send(request_frame(produced, version))
        cluster.commit(0)
        then(cluster.partitions[1])
        return b"".join(await cluster.client.frames(1)).replace(cluster.topic_id, bytes(16))


@pytest.mark.parametrize("version", [9, 13])
async def test_too_few_in_sync_are_told_alike(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast_way = await answer_with_too_few_in_sync(tmp_path / "fast", version)
    parse_by(monkeypatch, ApiKey.PRODUCE, None)
    assert fast_way == await answer_with_too_few_in_sync(tmp_path / "general", version)


async def answer_with_too_few_in_sync(directory: Path, version: int) -> bytes:
    async with replicated(directory, min_insync_replicas="2") as cluster:
        follow(cluster.partitions[0], in_sync=False)
        cluster.client.send(request_frame(request(cluster.topic_id, (0, batch()), acks=ALL), version))
        return b"".join(await cluster.client.frames(1)).replace(cluster.topic_id, bytes(16))
