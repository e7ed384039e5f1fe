"""Tests consumers that read from followers (KIP-392): the selected replica, and the reads of a follower."""

from __future__ import annotations

import pytest

from broker.config.replication import RACK_AWARE
from broker.replica.following import append_as_follower, take_watermarks
from broker.replica.partition import Partition
from broker.replica.truncation import Truncation
from coordinator.cluster.brokers.info import BrokerRegistration, Endpoint
from coordinator.replication.isr import NO_BROKER_EPOCH
from coordinator.replication.roles import FollowerFetch, Following
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.asking import batch, fetch_request, list_offset, produce_request
from tests.broker.following import FOLLOWER, acknowledge, follow
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame

FETCH, BY_NAME, BEFORE_RACKS = 1, 12, 10
LONG_MS = 60_000
NEAR, FAR = "near", "far"
EPOCH = 4
ACKS_ONE = 1
LATEST = -1


@pytest.fixture
def options() -> dict[str, str]:
    return {"replica.selector.class": RACK_AWARE, "broker.rack": FAR}


@pytest.fixture
async def partition(broker: InProcess) -> Partition:
    """Returns a partition with a follower in another rack."""
    await broker.create_topic("t")
    enter(broker)
    partition = broker.server.broker.replicas.partition("t", 0)
    follow(partition)
    client = broker.client()
    client.send(request_frame(produce_request("t", (0, batch(b"0", b"1")), acks=ACKS_ONE), BY_NAME))
    acknowledge(partition, 2)
    return partition


def enter(broker: InProcess, *, rack: str = NEAR, fenced: bool = False, listener: str = "PLAINTEXT") -> None:
    """Registers the follower's broker in the metadata."""
    endpoints = (Endpoint(listener, "127.0.0.1", 9),)
    registration = BrokerRegistration(FOLLOWER, 8, bytes(16), endpoints, {}, rack, fenced)
    broker.server.broker.image.brokers[FOLLOWER] = registration


async def fetched(client: Client, offset: int = 0, rack: str = NEAR, **fields: int) -> PartitionData:
    return (await client.ask(request(offset, rack, **fields), BY_NAME, FetchResponse)).responses[0].partitions[0]


def request(offset: int, rack: str, **fields: int) -> FetchRequest:
    of_rack = fetch_request("t", offset, **fields)  # type: ignore[arg-type]
    of_rack.rack_id = rack
    return of_rack


def follows(partition: Partition) -> None:
    """Makes this broker a follower, in a newer epoch."""
    partition.become(Following(FOLLOWER, EPOCH, partition.role.partition_epoch + 1), 0)


def replicate(partition: Partition, records: bytes) -> None:
    append_as_follower(partition, memoryview(records), EPOCH, 0, 0)


async def test_a_consumer_is_sent_to_the_follower_in_its_rack(client: Client, partition: Partition) -> None:
    data = await fetched(client)
    assert (data.error_code, data.preferred_read_replica, data.records) == (ErrorCode.NONE, FOLLOWER, b"")
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (2, 2, 0)


async def test_one_that_would_wait_is_sent_at_once(client: Client, partition: Partition) -> None:
    assert (await fetched(client, 2, max_wait_ms=LONG_MS)).preferred_read_replica == FOLLOWER


@pytest.mark.parametrize("rack", ["", FAR, "elsewhere"])
async def test_a_consumer_of_another_rack_stays_with_the_leader(
    rack: str, client: Client, partition: Partition
) -> None:
    data = await fetched(client, rack=rack)
    assert (data.preferred_read_replica, bool(data.records)) == (-1, True)


@pytest.mark.parametrize("unfit", [{"rack": FAR}, {"fenced": True}, {"listener": "REPLICATION"}])
async def test_a_follower_that_the_consumer_cannot_use_is_not_named(
    unfit: dict[str, object], broker: InProcess, client: Client, partition: Partition
) -> None:
    enter(broker, **unfit)  # type: ignore[arg-type]
    assert (await fetched(client)).preferred_read_replica == -1


async def test_a_follower_that_is_not_in_sync_is_not_named(client: Client, partition: Partition) -> None:
    follow(partition, in_sync=False)
    assert (await fetched(client)).preferred_read_replica == -1


@pytest.mark.parametrize(("offset", "preferred"), [(0, -1), (1, FOLLOWER), (2, FOLLOWER)])
async def test_a_follower_without_the_offset_is_not_named(
    offset: int, preferred: int, client: Client, partition: Partition
) -> None:
    partition.fetched(FollowerFetch(FOLLOWER, NO_BROKER_EPOCH, 2, 1, 0))
    assert (await fetched(client, offset)).preferred_read_replica == preferred


async def test_a_session_is_told_as_well(client: Client, partition: Partition) -> None:
    first = await client.ask(request(0, "", session=(0, 0)), BY_NAME, FetchResponse)  # type: ignore[arg-type]
    goes_on = fetch_request("", partitions=(), session=(first.session_id, 1))
    goes_on.rack_id = NEAR
    (topic,) = (await client.ask(goes_on, BY_NAME, FetchResponse)).responses
    assert topic.partitions[0].preferred_read_replica == FOLLOWER


async def test_a_follower_serves_what_it_knows_to_be_committed(client: Client, partition: Partition) -> None:
    follows(partition)
    replicate(partition, batch(b"2", base_offset=2, partition_leader_epoch=EPOCH))
    data = await fetched(client, current_leader_epoch=EPOCH)
    assert (data.error_code, data.high_watermark, data.preferred_read_replica) == (ErrorCode.NONE, 2, -1)
    assert len(data.records or b"") == len(batch(b"0", b"1"))
    assert not (await fetched(client, 2)).records
    assert not (await fetched(client, 3)).records, "within the log, but not committed"
    assert (await fetched(client, 4)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_consumer_that_waits_at_a_follower_is_woken_by_what_it_replicates(
    client: Client, partition: Partition
) -> None:
    follows(partition)
    client.send(request_frame(request(2, NEAR, max_wait_ms=LONG_MS), BY_NAME))
    replicate(partition, batch(b"2", base_offset=2, partition_leader_epoch=EPOCH))
    assert not client.wire.sent, "not committed"
    take_watermarks(partition, 3, 0)
    (frame,) = await client.frames(1)
    assert decode_response(frame, FETCH, BY_NAME, FetchResponse).responses[0].partitions[0].records


@pytest.mark.parametrize(
    ("epoch", "code"), [(EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_a_follower_fences_the_epochs_of_other_leaders(
    epoch: int, code: ErrorCode, client: Client, partition: Partition
) -> None:
    follows(partition)
    assert (await fetched(client, current_leader_epoch=epoch)).error_code == code


async def test_a_log_that_is_being_truncated_is_not_read(client: Client, partition: Partition) -> None:
    follows(partition)
    partition.truncation = Truncation()
    assert (await fetched(client)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_client_that_knows_of_no_replicas_is_served_by_leaders_only(
    client: Client, partition: Partition
) -> None:
    old = await client.ask(fetch_request("t"), BEFORE_RACKS, FetchResponse)
    assert old.responses[0].partitions[0].records
    follows(partition)
    refused = await client.ask(fetch_request("t"), BEFORE_RACKS, FetchResponse)
    assert refused.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_other_questions_are_for_the_leader(client: Client, partition: Partition) -> None:
    follows(partition)
    assert (await list_offset(client, "t", LATEST)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    requested = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    epochs = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[requested])]
    )
    answer = await client.ask(epochs, 4, OffsetForLeaderEpochResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
