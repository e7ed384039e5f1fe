"""Tests followers' fetches: they read to the log's end, and the leader learns their progress."""

from __future__ import annotations

import asyncio

import pytest

from broker.dispatch import parts, route
from broker.handlers import delete_records
from broker.replica.partition import Partition
from coordinator.cluster.topics import topic
from coordinator.replication.isr import NEVER_MS, Follower, IsrRules
from coordinator.replication.roles import Leading, next_role
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from storage.config import LogConfig
from tests.broker.asking import batch, fetch, fetch_request, produce_request
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame
from tests.clock import running_clock
from tests.waiting import until

FETCH, DELETE_RECORDS = 1, 21
BY_NAME, WITH_REPLICA_STATE = 12, 17
DELETE_RECORDS_VERSION = 2
LONG_MS = 60_000
ACKS_ONE = 1
LEADER_RATE = "leader.replication.throttled.rate"


@pytest.fixture
async def partition(broker: InProcess) -> Partition:
    await broker.create_topic("t")
    partition = broker.server.broker.replicas.partition("t", 0)
    follow(partition)
    return partition


def append(broker: InProcess, value: bytes = b"v") -> None:
    broker.client().send(request_frame(produce_request("t", (0, batch(value)), acks=ACKS_ONE), BY_NAME))


def follower_request(
    offset: int, log_start_offset: int = 0, session: tuple[int, int] = (0, -1), **fields: int
) -> FetchRequest:
    request = fetch_request("t", offset, session=session, **fields)  # type: ignore[arg-type]
    request.replica_id = FOLLOWER
    request.topics[0].partitions[0].log_start_offset = log_start_offset
    return request


async def followed(client: Client, offset: int, log_start_offset: int = 0, **fields: int) -> PartitionData:
    request = follower_request(offset, log_start_offset, **fields)  # type: ignore[arg-type]
    answer = await client.ask(request, BY_NAME, FetchResponse)
    return answer.responses[0].partitions[0]


def progress(partition: Partition) -> Follower:
    assert isinstance(partition.role, Leading)
    return partition.role.followers[FOLLOWER]


async def test_a_follower_reads_what_is_not_committed(broker: InProcess, client: Client, partition: Partition) -> None:
    append(broker)
    data = await followed(client, 0)
    assert (data.error_code, data.high_watermark, bool(data.records)) == (ErrorCode.NONE, 0, True)
    assert not (await fetch(client, "t", 0)).records


async def test_a_fetch_from_the_end_commits_and_says_so_at_once(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    assert (await followed(client, 1)).high_watermark == 1
    assert (await fetch(client, "t", 0)).records


async def test_the_leader_remembers_where_a_follower_is(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    await followed(client, 0, log_start_offset=0)
    assert (progress(partition).log_end_offset, progress(partition).caught_up_ms) == (0, NEVER_MS)
    await followed(client, 1, log_start_offset=1)
    follower = progress(partition)
    assert (follower.log_end_offset, follower.log_start_offset, follower.leader_end_offset) == (1, 1, 1)
    assert follower.caught_up_ms > 0


@pytest.mark.parametrize("offset", [-1, 5])
async def test_an_offset_out_of_range_is_no_progress(
    offset: int, broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    before = progress(partition)
    assert (await followed(client, offset)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert progress(partition) == before


async def test_a_log_that_diverges_is_no_progress(broker: InProcess, client: Client, partition: Partition) -> None:
    append(broker)
    elected = topic.PartitionRegistration((1, FOLLOWER), (1, FOLLOWER), leader=1, leader_epoch=5, partition_epoch=9)
    partition.become(next_role(partition.role, elected, 1, partition.log_end_offset, 0), 0)
    append(broker)
    before = progress(partition)
    data = await followed(client, 2, last_fetched_epoch=3)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, data.records) == (0, 1, b"")
    assert progress(partition) == before
    assert (await followed(client, 2, last_fetched_epoch=5)).high_watermark == 2


async def test_who_is_below_the_log_s_start_is_out_of_range_whatever_its_epoch(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    await followed(client, 1)
    partition.delete_records(1)
    assert (await followed(client, 0, last_fetched_epoch=0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_follower_that_waits_is_woken_by_the_append(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    client.send(request_frame(follower_request(0, max_wait_ms=LONG_MS), BY_NAME))
    assert len(partition.append_waiters) == 1
    noted = progress(partition)
    append(broker)
    (frame,) = await client.frames(1)
    answer = decode_response(frame, FETCH, BY_NAME, FetchResponse)
    assert answer.responses[0].partitions[0].records
    assert not partition.append_waiters
    assert progress(partition) == noted, "what waited is as old as its request"


async def test_a_follower_that_waits_and_goes_leaves_nothing(client: Client, partition: Partition) -> None:
    client.send(request_frame(follower_request(0, max_wait_ms=LONG_MS), BY_NAME))
    client.connection.connection_lost(None)
    await asyncio.sleep(0)
    assert not partition.append_waiters


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NONE), (8, ErrorCode.NONE), (7, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
async def test_a_broker_that_has_registered_anew_is_not_taken_for_its_former_self(
    epoch: int, code: ErrorCode, broker: InProcess, client: Client, partition: Partition
) -> None:
    partition.rules = IsrRules(lambda _: True, lambda: LONG_MS, lambda _: 8)
    append(broker)
    request = fetch_request("", 1, topic_id=partition.topic_id)
    request.replica_state = ReplicaState(replica_id=FOLLOWER, replica_epoch=epoch)
    answer = await client.ask(request, WITH_REPLICA_STATE, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == code
    assert partition.high_watermark == (0 if code else 1)


async def test_a_follower_s_session_goes_on_from_the_offsets_that_it_names(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    answer = await client.ask(follower_request(0, session=(0, 0)), BY_NAME, FetchResponse)
    assert answer.responses[0].partitions[0].records
    request = follower_request(1, log_start_offset=1, session=(answer.session_id, 1))
    (topic_answer,) = (await client.ask(request, BY_NAME, FetchResponse)).responses
    assert topic_answer.partitions[0].high_watermark == 1
    assert progress(partition).log_start_offset == 1


def deletion(timeout_ms: int) -> DeleteRecordsRequest:
    requested = DeleteRecordsPartition(partition_index=0, offset=1)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[requested])], timeout_ms=timeout_ms)


async def test_records_are_deleted_once_the_live_followers_have_deleted_them(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    partition.rules = IsrRules(lambda _: True, lambda: LONG_MS, lambda _: 8)
    append(broker)
    await followed(client, 1)
    deleting = broker.client()
    deleting.send(request_frame(deletion(LONG_MS), DELETE_RECORDS_VERSION))
    await until(lambda: partition.append_waiters)
    assert not deleting.wire.sent
    await followed(client, 1, log_start_offset=1)
    (frame,) = await deleting.frames(1)
    answer = decode_response(frame, DELETE_RECORDS, DELETE_RECORDS_VERSION, DeleteRecordsResponse)
    result = answer.topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 1)
    assert not partition.append_waiters


async def test_a_follower_that_does_not_delete_in_time_is_told_of(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    partition.rules = IsrRules(lambda _: True, lambda: LONG_MS, lambda _: 8)
    append(broker)
    await followed(client, 1)
    answer = await client.ask(deletion(20), DELETE_RECORDS_VERSION, DeleteRecordsResponse)
    result = answer.topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert not partition.append_waiters


@pytest.mark.source_only
async def test_all_parts_of_a_deletion_have_one_deadline(
    broker: InProcess, client: Client, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.rules = IsrRules(lambda _: True, lambda: LONG_MS, lambda _: 8)
    append(broker)
    await followed(client, 1)
    clock, timeouts_ms = running_clock(), list[int]()

    async def time_out(_partition: Partition, _offset: int, timeout_ms: int) -> None:
        timeouts_ms.append(max(timeout_ms, 0))
        clock.advance(timeouts_ms[-1])
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    monkeypatch.setattr(route, "LARGE_REQUEST_BYTES", 1)
    monkeypatch.setattr(parts, "PART_ENTRIES", 1)
    monkeypatch.setattr(delete_records, "deleted_everywhere", time_out)
    broker.server.broker.clock = clock
    request = deletion(LONG_MS)
    request.topics *= 3
    await client.ask(request, DELETE_RECORDS_VERSION, DeleteRecordsResponse)
    assert len(timeouts_ms) == 3
    assert sum(timeouts_ms) <= LONG_MS


async def test_a_broker_that_is_not_alive_holds_no_deletion_up(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    append(broker)
    await followed(client, 1)
    answer = await client.ask(deletion(LONG_MS), DELETE_RECORDS_VERSION, DeleteRecordsResponse)
    result = answer.topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 1)


def throttle(broker: InProcess, partition: Partition, *, limit: int, replicas: tuple[str, ...] = ("0:1",)) -> None:
    partition.configure(LogConfig(leader_replication_throttled_replicas=replicas))
    live = broker.server.broker.live_config
    live.layers = live.layers.changed(broker={LEADER_RATE: str(limit)})


async def test_a_throttled_follower_that_is_not_in_sync_is_held_back(
    broker: InProcess, client: Client, partition: Partition
) -> None:
    follow(partition, in_sync=False)
    throttle(broker, partition, limit=1)
    append(broker)
    assert (await followed(client, 0)).records, "nothing was measured yet"
    data = await followed(client, 0)
    assert (data.error_code, data.records, data.high_watermark) == (ErrorCode.NONE, b"", 1)
    assert (await followed(client, 7)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_one_that_is_held_back_waits(broker: InProcess, client: Client, partition: Partition) -> None:
    follow(partition, in_sync=False)
    throttle(broker, partition, limit=0)
    broker.server.broker.fetches.throttle.record(1)
    append(broker)
    client.send(request_frame(follower_request(0, max_wait_ms=LONG_MS), BY_NAME))
    append(broker)
    await asyncio.sleep(0)
    assert not client.wire.sent
    assert len(partition.append_waiters) == 1


@pytest.mark.parametrize(
    ("in_sync", "limit", "replicas"), [(True, 0, ("0:1",)), (False, 1 << 40, ("0:1",)), (False, 0, ("0:2", "1:1"))]
)
async def test_who_is_in_sync_within_the_limit_or_not_named_is_not_held_back(
    in_sync: bool, limit: int, replicas: tuple[str, ...], broker: InProcess, client: Client, partition: Partition
) -> None:
    follow(partition, in_sync=in_sync)
    throttle(broker, partition, limit=limit, replicas=replicas)
    broker.server.broker.fetches.throttle.record(1)
    append(broker)
    assert (await followed(client, 0)).records


async def test_a_consumer_is_not_held_back(broker: InProcess, client: Client, partition: Partition) -> None:
    throttle(broker, partition, limit=0, replicas=("*",))
    broker.server.broker.fetches.throttle.record(1)
    append(broker)
    await followed(client, 1)
    assert (await fetch(client, "t", 0)).records
