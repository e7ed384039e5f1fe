"""Tests that a follower's fetches read only partitions that may have news for it, and miss none."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.clock import Clock, Timer
from broker.config.authorization import STANDARD_AUTHORIZER
from broker.fetch.sessions import SWEEP_MS, FetchSession
from broker.replica.partition import Partition
from coordinator.replication.isr import Isr
from coordinator.replication.roles import Following, Leading
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse, ForgottenTopic, PartitionData, ReplicaState
from tests.broker.doors import EVE
from tests.broker.fetch.test_wire_of_followers import VERSION, fetching
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import InProcess, decode_response, request_frame
from tests.broker.produce.test_wire import batch
from tests.clock import START_MS

COUNT = 20
"""Partitions of the topic."""
LONG_MS = 600_000


class StandingClock:
    """The machine's clock, but `now_ms` changes only when a test changes it."""

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self.time_ms = machine.now_ms()

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self._machine.monotonic_ms()

    def monotonic_ns(self) -> int:
        return self._machine.monotonic_ns()

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self._machine.call_at(when_ms, then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        return self._machine.call_after(delay_ms, then)


class FollowerSession:
    """A follower's incremental session, and what its answers have told about each partition."""

    def __init__(self, broker: InProcess, topic_id: bytes, partitions: list[Partition]) -> None:
        fetches = broker.server.broker.fetches
        self.clock = fetches.clock = StandingClock(fetches.clock)
        self.sessions = fetches.sessions
        self.client = broker.client()
        self.topic_id = topic_id
        self.partitions = partitions
        self.session_id = 0
        self.epoch = 0
        self.ends = dict.fromkeys(range(len(partitions)), 0)
        self.high_watermarks: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.moved: set[int] = set(self.ends)
        """The partitions that the next fetch names."""

    def send(self, max_wait_ms: int = 0, **fields: Any) -> None:
        named = [(index, self.ends[index]) for index in sorted(self.moved)]
        request = fetching(
            self.topic_id, *named, session_id=self.session_id, session_epoch=self.epoch, max_wait_ms=max_wait_ms,
            **fields,
        )  # fmt: skip
        self.moved.clear()
        self.client.send(request_frame(request, VERSION))

    async def receive(self) -> dict[int, PartitionData]:
        """Returns the next answer's partitions, and notes their news."""
        (frame,) = await self.client.frames(1)
        response = decode_response(frame, ApiKey.FETCH, VERSION, FetchResponse)
        assert response.error_code == ErrorCode.NONE
        self.session_id = response.session_id
        self.epoch += 1
        answered = {data.partition_index: data for topic in response.responses for data in topic.partitions}
        for index, data in answered.items():
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:  # a follower begins again at the log's start
                self.ends[index] = self.partitions[index].log_start_offset
                self.moved.add(index)
                continue
            assert data.error_code == ErrorCode.NONE, (index, data)
            self.high_watermarks[index], self.starts[index] = data.high_watermark, data.log_start_offset
            if data.records:
                self.ends[index] = self.partitions[index].log_end_offset
                self.moved.add(index)
        return answered

    async def fetch(self, **fields: Any) -> dict[int, PartitionData]:
        self.send(**fields)
        return await self.receive()

    async def settled(self) -> None:
        """Fetches until nothing is new."""
        while await self.fetch() or self.moved:
            pass

    def reads(self) -> int:
        """Returns the number of reads of the topic's partitions so far."""
        return self.partitions[0].traffic.reads


async def follower(broker: InProcess, count: int = COUNT) -> FollowerSession:
    topic_id = await broker.create_topic("t", partitions=count)
    replicas = [one for one in broker.server.broker.replicas if one.name.topic == "t"]
    partitions = sorted(replicas, key=lambda one: one.name.partition)
    for partition in partitions:
        follow(partition)
    session = FollowerSession(broker, topic_id, partitions)
    await session.settled()
    return session


def append(partition: Partition) -> None:
    partition.append(memoryview(bytearray(batch())), START_MS)


def shrink(partition: Partition) -> None:
    role = partition.role
    assert isinstance(role, Leading)
    partition.become(role.with_isr(Isr(frozenset((role.leader_id,)))), 0)


async def test_only_a_partition_with_news_is_read(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        before = session.reads()
        assert await session.fetch() == {}
        assert session.reads() == before
        append(session.partitions[3])
        answered = [list(await session.fetch()) for _ in range(4)]
        assert answered == [[3], [3], [], []]  # its records, and that they are committed
        assert session.reads() == before + 2


async def test_an_append_completes_a_fetch_that_waits(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        session.send(LONG_MS)
        append(session.partitions[7])
        assert list(await session.receive()) == [7]
        assert not any(partition.held for partition in session.partitions)


async def test_appends_to_several_partitions_are_in_one_answer(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        append(session.partitions[1])
        await session.fetch()
        session.send(LONG_MS)  # it is held back, as the session has just had records
        append(session.partitions[5])
        append(session.partitions[6])
        assert {1, 5, 6} == set(await session.receive())


async def test_a_log_start_that_retention_moves_is_told_by_the_next_sweep(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        append(session.partitions[2])
        await session.settled()
        session.partitions[2].log.advance_log_start(1)
        assert await session.fetch() == {}
        session.clock.time_ms += SWEEP_MS
        assert {index: data.log_start_offset for index, data in (await session.fetch()).items()} == {2: 1}


async def test_a_sweep_records_that_the_follower_keeps_up(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        session.clock.time_ms += SWEEP_MS
        await session.fetch()
        for partition in session.partitions:
            assert isinstance(partition.role, Leading)
            assert partition.role.followers[FOLLOWER].fetched_ms == session.clock.time_ms


async def test_another_broker_epoch_is_noted_for_all_partitions_at_once(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        before = session.reads()
        again = ReplicaState(replica_id=FOLLOWER, replica_epoch=1)
        await session.fetch(replica_state=again)
        assert session.reads() == before + COUNT
        await session.fetch(replica_state=again)
        assert session.reads() == before + COUNT


async def test_a_partition_that_another_broker_leads_is_told_at_once(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        session.send(LONG_MS)
        session.partitions[4].become(Following(9, 5, 5), 0)
        (frame,) = await session.client.frames(1)
        (topic,) = decode_response(frame, ApiKey.FETCH, VERSION, FetchResponse).responses
        (data,) = topic.partitions
        assert (data.partition_index, data.error_code) == (4, ErrorCode.FENCED_LEADER_EPOCH)


async def test_a_follower_that_loses_its_right_gets_an_error_for_every_partition(tmp_path: Path) -> None:
    options = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    async with InProcess(tmp_path, options) as broker:
        session = await follower(broker)
        session.client.connection.principal = EVE
        session.send()
        (frame,) = await session.client.frames(1)
        (topic,) = decode_response(frame, ApiKey.FETCH, VERSION, FetchResponse).responses
        codes = {data.partition_index: data.error_code for data in topic.partitions}
        assert codes == dict.fromkeys(range(COUNT), ErrorCode.TOPIC_AUTHORIZATION_FAILED)


async def test_a_named_partition_is_read_and_a_forgotten_one_is_not(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        before = session.reads()
        session.moved = {8}
        forgotten = [ForgottenTopic(topic_id=session.topic_id, partitions=[9])]
        assert await session.fetch(forgotten_topics_data=forgotten) == {}
        assert session.reads() == before + 1
        append(session.partitions[9])
        session.clock.time_ms += SWEEP_MS
        assert await session.fetch() == {}


@pytest.mark.parametrize("way", ["closed", "replaced"])
async def test_partitions_forget_a_session_that_has_ended(way: str, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        assert all(partition.append_waiters for partition in session.partitions)
        session.epoch = -1 if way == "closed" else 0
        await session.fetch()
        assert not any(partition.append_waiters for partition in session.partitions)


async def test_the_end_of_an_older_fetch_takes_nothing_from_a_newer_one(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        session.send(LONG_MS)
        older, session.client = session.client, broker.client()  # it dials again before the leader notices
        session.epoch += 1
        session.send(LONG_MS)
        older.connection.connection_lost(None)
        append(session.partitions[7])
        assert list(await session.receive()) == [7]


async def test_a_fetch_of_a_session_that_has_ended_settles_nothing(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        session = await follower(broker)
        session.send(LONG_MS)
        older, session.client = session.client, broker.client()
        session.epoch, session.moved = 0, set(session.ends)
        await session.settled()
        append(session.partitions[7])
        assert await older.frames(1)
        await session.settled()
        assert {len(partition.append_waiters) for partition in session.partitions} == {1}


def test_a_clock_that_goes_back_does_not_end_the_sweeps() -> None:
    session = FetchSession(1, 10_000, True, True)
    session.sweep(5_000, session.broker_epoch)
    assert session.swept_ms == 5_000


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_happens_the_follower_learns_of_it(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    async with InProcess(tmp_path) as broker:
        session = await follower(broker, 6)
        is_waiting = False
        for _ in range(300):
            partition = choose.choice(session.partitions)
            match choose.randrange(8):
                case 0 | 1 | 2:
                    append(partition)
                case 3:
                    partition.delete_records(-1)
                case 4:
                    shrink(partition)
                case 5 if isinstance(partition.role, Leading):
                    follow(partition)
                case 6:
                    session.clock.time_ms += choose.choice((1, SWEEP_MS))
                case _:
                    session.moved |= {choose.randrange(6)}
            if is_waiting or choose.random() < 0.5:
                if is_waiting:
                    await session.receive()
                is_waiting = choose.random() < 0.3
                if is_waiting:
                    session.send(choose.choice((1, 20)))
                else:
                    await session.fetch()
        if is_waiting:
            await session.receive()
        await session.settled()
        await session.settled()
        for index, partition in enumerate(session.partitions):
            known = session.ends[index], session.high_watermarks[index], session.starts[index]
            assert known == (partition.log_end_offset, partition.high_watermark, partition.log_start_offset)
