"""Tests a broker's fetchers with a leader that the test controls: appends, truncations, pauses, and changes of
leaders."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Self, TypeVar

import pytest

from broker.clock import Clock
from broker.replica.fetcher_environment import ReplicationEnvironment
from broker.replica.partition import Partition
from broker.replica.replica_fetcher import REFUSED_MS
from broker.replica.replica_fetchers import ReplicaFetchers
from broker.replica.throttle import follower_throttle
from client.address import Address
from client.errors import PeerUnavailable
from coordinator.cluster.brokers.info import BrokerRegistration, Endpoint
from coordinator.replication.roles import Following
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.records.building import build
from storage.config import LogConfig
from tests.broker.following import led_alone
from tests.broker.inprocess import LONG_S, InProcess
from tests.clock import ManualClock
from tests.coordinator.replication.leading import EPOCH, data
from tests.log_lines import Line, problems
from tests.storage.writing import records
from tests.waiting import until

R = TypeVar("R")
LEADER = 2
BACKOFF_MS = 5
SOON = {"replica.fetch.backoff.ms": str(BACKOFF_MS)}


class Leader:
    """The leader's end of the connection: requests wait here for the test's answers."""

    def __init__(self) -> None:
        self.address = Address("leader", 9092)
        self.requests: asyncio.Queue[tuple[object, asyncio.Future[object]]] = asyncio.Queue()
        self.connections: list[str] = []
        self.aborted = 0

    def connect(self, address: Address, client_id: str) -> Leader:
        self.address = address
        self.connections.append(client_id)
        return self

    async def send(self, request: object, response: type[R], *, timeout_ms: int, max_dials: int | None = None) -> R:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.requests.put_nowait((request, answer))
        answered = await answer
        assert isinstance(answered, response)
        return answered

    def abort(self) -> None:
        self.aborted += 1

    async def next(self) -> tuple[object, asyncio.Future[object]]:
        async with asyncio.timeout(LONG_S):
            return await self.requests.get()


class FollowerBroker(InProcess):
    """A broker with the empty partition 0 of `t`, which the test's leader leads."""

    def __init__(self, directory: Path, options: dict[str, str] | None = None, clock: Clock | None = None) -> None:
        """`clock` is the clock of the fetchers, by default the broker's."""
        super().__init__(directory, options)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.create_topic("t")
        self.leader = Leader()
        broker = self.server.broker
        endpoint = Endpoint("PLAINTEXT", "leader", 9092)
        broker.image.brokers[LEADER] = BrokerRegistration(LEADER, 1, bytes(16), (endpoint,), {})
        environment = ReplicationEnvironment(
            broker.image,
            broker.node,
            broker.live_config,
            self._clock or broker.clock,
            broker.disk_work,
            self.leader.connect,
            follower_throttle(broker.clock, broker.live_config),
        )
        self.fetchers = ReplicaFetchers(environment)
        broker.replicas.subscribe_to_roles(self.fetchers.role_changed)
        self.partition.become(Following(LEADER, EPOCH, 1), 0)
        return self

    async def __aexit__(self, *ended: object) -> None:
        self.fetchers.stop()
        await super().__aexit__(*ended)  # type: ignore[arg-type]

    @property
    def partition(self) -> Partition:
        return self.server.broker.replicas.partition("t", 0)

    async def fetched(self, *partitions: PartitionData, code: ErrorCode = ErrorCode.NONE) -> FetchPartition | None:
        """Answers the next Fetch; returns the partition that it names, or None."""
        request, answer = await self.leader.next()
        assert isinstance(request, FetchRequest)
        topics = [response_topic(self.partition.topic_id, *partitions)] if partitions else []
        answer.set_result(FetchResponse(error_code=int(code), session_id=7, responses=topics))
        return request.topics[0].partitions[0] if request.topics else None

    async def offset_listed(self, offset: int) -> int:
        """Answers the next ListOffsets; returns the timestamp that it names."""
        request, answer = await self.leader.next()
        assert isinstance(request, ListOffsetsRequest)
        listed = ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=offset)
        answer.set_result(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[listed])]))
        return request.topics[0].partitions[0].timestamp


def forgotten(request: FetchRequest) -> list[bytes]:
    """Returns the ids of the topics that a request leaves out of the session."""
    return [topic.topic_id for topic in request.forgotten_topics_data]


def response_topic(topic_id: bytes, *partitions: PartitionData) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic_id=topic_id, partitions=list(partitions))


def batch_at(offset: int, *values: str, epoch: int = EPOCH) -> bytes:
    return bytes(build(records(*values), base_offset=offset, partition_leader_epoch=epoch))


def damaged(batch: bytes) -> bytes:
    """Returns the batch with one flipped bit that its checksum covers."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


async def test_batches_are_appended_and_the_next_fetch_acknowledges_them(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        first = await broker.fetched(data(records=batch_at(0, "a", "b"), high_watermark=1))
        assert first is not None
        assert (first.fetch_offset, first.current_leader_epoch) == (0, EPOCH)
        second = await broker.fetched()
        assert second is not None
        assert (second.fetch_offset, second.last_fetched_epoch) == (2, EPOCH)
        assert broker.partition.high_watermark == 1
        assert broker.leader.connections == ["broker-1-fetcher-0"]


async def test_a_new_leader_epoch_is_fetched_in_from_then_on(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        _, answer = await broker.leader.next()
        broker.partition.become(Following(LEADER, EPOCH + 1, 2), 0)
        topic = response_topic(broker.partition.topic_id, data(records=batch_at(0, "a")))
        answer.set_result(FetchResponse(session_id=7, responses=[topic]))
        fetch = await broker.fetched()
        assert fetch is not None
        assert (fetch.fetch_offset, fetch.current_leader_epoch) == (0, EPOCH + 1), "the answer was of another epoch"


async def test_a_throttled_replica_pauses_once_it_has_had_more_than_it_may(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        broker.partition.configure(LogConfig(follower_replication_throttled_replicas=("0:1",)))
        live = broker.server.broker.live_config
        live.layers = live.layers.changed(broker={"follower.replication.throttled.rate": "1"})
        await broker.fetched(data(records=batch_at(0, "a"), high_watermark=9))
        assert await broker.fetched() is None, "it is forgotten, as it is not in sync"
        live.layers = live.layers.changed(broker={})
        fetch = await broker.fetched()
        assert fetch is not None
        assert fetch.fetch_offset == 1


async def test_a_log_that_diverges_is_cut_by_a_thread(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        await broker.fetched(data(records=batch_at(0, "a", epoch=1) + batch_at(1, "b", epoch=2)))
        await broker.fetched(data(diverging=(1, 1)))
        await until(lambda: broker.partition.log_end_offset == 1)
        while (fetch := await broker.fetched()) is None:
            """It was forgotten while the thread was at it."""
        assert (fetch.fetch_offset, fetch.last_fetched_epoch) == (1, 1)


@pytest.mark.source_only
async def test_a_fault_of_ours_in_a_thread_is_logged_and_ends_the_following(
    tmp_path: Path, logged: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def truncate(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async with FollowerBroker(tmp_path, SOON) as broker:
        await broker.fetched(data(records=batch_at(0, "a", epoch=1) + batch_at(1, "b", epoch=2)))
        monkeypatch.setattr(Partition, "truncate", truncate)
        await broker.fetched(data(diverging=(1, 1)))
        await until(lambda: [line.event for line in problems(logged)] == ["replication failed"])
        assert broker.partition.log_end_offset == 2


async def test_a_log_whose_next_records_are_deleted_begins_anew(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        await broker.fetched(data(records=batch_at(0, "a")))
        await broker.fetched(data(0, ErrorCode.OFFSET_OUT_OF_RANGE))
        assert [await broker.offset_listed(90), await broker.offset_listed(50)] == [-1, -2]
        await until(lambda: broker.partition.log_end_offset == 50)
        while (fetch := await broker.fetched()) is None:
            """It was forgotten while the thread was at it."""
        assert (fetch.fetch_offset, fetch.log_start_offset) == (50, 50)
        assert broker.partition.high_watermark == 50, "KAFKA-9491"


async def test_an_empty_log_begins_with_the_batch_that_the_leader_begins_within(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        await broker.fetched(data(0, ErrorCode.OFFSET_OUT_OF_RANGE))
        assert [await broker.offset_listed(90), await broker.offset_listed(51)] == [-1, -2]
        await until(lambda: broker.partition.log_end_offset == 51)
        within = data(records=batch_at(50, "a", "b", "c"), high_watermark=53, log_start=51)
        while await broker.fetched(within) is None:
            """It was forgotten while the thread was at it."""
        await until(lambda: broker.partition.log_end_offset == 53)
        assert (broker.partition.log_start_offset, broker.partition.high_watermark) == (51, 53)


async def test_damaged_batches_are_fetched_again_after_a_pause(tmp_path: Path) -> None:
    clock = ManualClock(0)
    async with FollowerBroker(tmp_path, SOON, clock) as broker:
        await broker.fetched(data(records=damaged(batch_at(0, "a"))))
        request, answer = await broker.leader.next()
        assert isinstance(request, FetchRequest)
        assert forgotten(request) == [broker.partition.topic_id], "left out of the session, for the pause"
        clock.advance(BACKOFF_MS)
        answer.set_result(FetchResponse(session_id=7, responses=[]))
        fetch = await broker.fetched(data(records=batch_at(0, "a")))
        assert fetch is not None
        await until(lambda: broker.partition.log_end_offset == 1)


async def test_damaged_batches_of_a_partition_delay_no_other_partition(tmp_path: Path) -> None:
    clock = ManualClock(0)
    async with FollowerBroker(tmp_path, SOON, clock) as broker:
        await broker.create_topic("sound")
        sound = broker.server.broker.replicas.partition("sound", 0)
        sound.become(Following(LEADER, EPOCH, 1), 0)
        await broker.fetched()  # the leader got this request before there was a second topic
        _, answer = await broker.leader.next()
        topics = [
            response_topic(broker.partition.topic_id, data(records=damaged(batch_at(0, "a")))),
            response_topic(sound.topic_id, data(records=batch_at(0, "b"))),
        ]
        answer.set_result(FetchResponse(session_id=7, responses=topics))
        request, answer = await broker.leader.next()
        assert isinstance(request, FetchRequest)
        assert [(topic.topic_id, topic.partitions[0].fetch_offset) for topic in request.topics] == [(sound.topic_id, 1)]
        assert forgotten(request) == [broker.partition.topic_id], "left out of the session, for the pause"
        assert sound.log_end_offset == 1
        clock.advance(BACKOFF_MS)
        answer.set_result(FetchResponse(session_id=7, responses=[]))
        assert await broker.fetched(data(records=batch_at(0, "a"))) is not None
        await until(lambda: broker.partition.log_end_offset == 1)


async def test_a_leader_that_is_not_reached_is_tried_again(tmp_path: Path, logged: list[Line]) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        for _ in range(2):
            _, answer = await broker.leader.next()
            answer.set_exception(PeerUnavailable("leader", "cannot be connected to"))
        assert await broker.fetched(data(records=batch_at(0, "a"))) is not None
        await until(lambda: broker.partition.log_end_offset == 1)
    assert [(line.event, line.fields) for line in problems(logged)] == [
        ("fetching from a leader failed", {"leader": LEADER, "reason": "leader: cannot be connected to"}),
    ], "one line, however often it fails for the same reason"


async def test_a_session_that_the_leader_dropped_begins_anew(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        await broker.fetched(data())
        await broker.fetched(code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        request, _ = await broker.leader.next()
        assert isinstance(request, FetchRequest)
        assert (request.session_id, request.session_epoch) == (0, 0)


async def test_who_leads_by_now_or_is_deleted_is_followed_no_more(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, SOON) as broker:
        _, answer = await broker.leader.next()
        broker.partition.become(led_alone(1, EPOCH + 1, 0), 0)
        assert broker.leader.aborted == 0, "the role of a newer partition epoch is taken over alone"
        role = led_alone(1, EPOCH + 1, 0)
        role.partition_epoch = 9
        broker.partition.become(role, 0)
        assert broker.leader.aborted == 1, "the fetcher has no partition any more, and ends"
        assert answer.cancelled() or not answer.done()
        broker.partition.become(Following(LEADER, EPOCH + 2, 10), 0)
        await broker.leader.next()
        broker.server.broker.replicas.remove(broker.partition.name)
        assert broker.leader.aborted == 2


async def test_partitions_are_spread_over_the_fetchers_of_a_leader(tmp_path: Path) -> None:
    async with FollowerBroker(tmp_path, {**SOON, "num.replica.fetchers": "2"}) as broker:
        await broker.create_topic("many", 4)
        for partition in broker.server.broker.replicas.topic("many").values():
            partition.become(Following(LEADER, EPOCH, 1), 0)
        for _ in range(2):
            await broker.leader.next()
        assert sorted(broker.leader.connections) == ["broker-1-fetcher-0", "broker-1-fetcher-1"]


async def refuse(broker: FollowerBroker, code: ErrorCode, count: int) -> None:
    """Answers the next Fetch, which names this number of partitions of one topic, with an error for each."""
    request, answer = await broker.leader.next()
    assert isinstance(request, FetchRequest)
    assert len(request.topics[0].partitions) == count
    topics = [response_topic(request.topics[0].topic_id, *(data(index, code) for index in range(count)))]
    answer.set_result(FetchResponse(session_id=7, responses=topics))


async def test_replicas_that_a_leader_does_not_serve_for_long_are_one_line_of_the_log(
    tmp_path: Path, logged: list[Line]
) -> None:
    clock = ManualClock(0)
    async with FollowerBroker(tmp_path, SOON, clock) as broker:
        await broker.create_topic("many", 3)
        for partition in broker.server.broker.replicas.topic("many").values():
            partition.become(Following(LEADER, EPOCH, 1), 0)
        await broker.fetched(data())  # asked for before there were others
        await refuse(broker, ErrorCode.UNKNOWN_TOPIC_ID, 3)
        for passed_ms in (REFUSED_MS - BACKOFF_MS, BACKOFF_MS):
            _, answer = await broker.leader.next()  # without them, for the pause
            clock.advance(passed_ms)
            assert not problems(logged)
            answer.set_result(FetchResponse(session_id=7, responses=[]))
            await refuse(broker, ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
        await until(lambda: bool(problems(logged)))
        (line,) = problems(logged)
        assert line.fields == {
            "leader": LEADER,
            "reason": "NOT_LEADER_OR_FOLLOWER",
            "partitions": 3,
            "partition": "many-0",
        }


async def test_an_error_that_does_not_pass_by_itself_is_told_at_once(tmp_path: Path, logged: list[Line]) -> None:
    async with FollowerBroker(tmp_path, SOON, ManualClock(0)) as broker:
        await refuse(broker, ErrorCode.KAFKA_STORAGE_ERROR, 1)
        await until(lambda: bool(problems(logged)))
        (line,) = problems(logged)
        assert line.fields == {"leader": LEADER, "reason": "KAFKA_STORAGE_ERROR", "partitions": 1, "partition": "t-0"}
