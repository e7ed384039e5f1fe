"""Tests ListOffsets and OffsetForLeaderEpoch: offsets by timestamp and by epoch."""

from __future__ import annotations

import pytest

from broker.replica.truncation import Truncation
from coordinator.replication.roles import Following
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.asking import MADE_MS, batch, list_offset, produce
from tests.broker.inprocess import Client, InProcess, decode_response, request_frame

CONSUMER, DEBUGGER, OTHER_BROKER = -1, -2, 2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


async def given_records(broker: InProcess, client: Client) -> None:
    """Appends offsets 0 to 4; the second and the fourth record have the largest timestamps of their batches."""
    await broker.create_topic("t")
    await produce(client, "t", batch(b"a", b"b", timestamp=MADE_MS))
    await produce(client, "t", batch(b"c", b"d", timestamp=MADE_MS + 100))
    await produce(client, "t", batch(b"e", timestamp=MADE_MS + 50))


async def test_the_ends_of_a_log(broker: InProcess, client: Client) -> None:
    await given_records(broker, client)
    partition = DeleteRecordsPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000)
    await client.ask(request, 2, DeleteRecordsResponse)
    for timestamp, offset in ((EARLIEST, 1), (EARLIEST_LOCAL, 1), (LATEST, 5)):
        listed = await list_offset(client, "t", timestamp)
        assert (listed.error_code, listed.timestamp, listed.offset, listed.leader_epoch) == (0, -1, offset, 0)


@pytest.mark.parametrize(
    ("timestamp", "record"),
    [
        (0, (MADE_MS, 0)),
        (MADE_MS + 1, (MADE_MS + 1, 1)),
        (MADE_MS + 2, (MADE_MS + 100, 2)),
        (MADE_MS + 101, (MADE_MS + 101, 3)),
        (MADE_MS + 102, (-1, -1)),
        (MAX_TIMESTAMP, (MADE_MS + 101, 3)),
    ],
)
async def test_the_first_record_that_is_late_enough(
    timestamp: int, record: tuple[int, int], broker: InProcess, client: Client
) -> None:
    await given_records(broker, client)
    answer = await list_offset(client, "t", timestamp)
    assert (answer.timestamp, answer.offset) == record


async def test_nothing_is_tiered(broker: InProcess, client: Client) -> None:
    await given_records(broker, client)
    for timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        assert (await list_offset(client, "t", timestamp, version=11)).offset == -1


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING_UPLOAD, 10), (-7, 11), (-3, 0)],
)
async def test_a_timestamp_that_the_version_does_not_know(
    timestamp: int, version: int, broker: InProcess, client: Client
) -> None:
    await broker.create_topic("t")
    assert (await list_offset(client, "t", timestamp, version=version)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_version_0_lists_where_segments_begin_newest_first(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", segment_bytes="1048576")
    for _ in range(3):
        await produce(client, "t", batch(bytes(600_000)))
    for timestamp, offsets in ((LATEST, [3, 2, 1, 0]), (EARLIEST, [0]), (1 << 60, [3, 2, 1, 0]), (0, [])):
        listed = await list_offset(client, "t", timestamp, version=0, max_num_offsets=9)
        assert listed.old_style_offsets == offsets
    listed = await list_offset(client, "t", LATEST, version=0, max_num_offsets=2)
    assert listed.old_style_offsets == [3, 2]


async def test_a_partition_asked_for_twice_is_refused_once(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    requested = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (LATEST, EARLIEST)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=requested)])
    answer = await client.ask(request, 9, ListOffsetsResponse)
    assert [partition.error_code for partition in answer.topics[0].partitions] == [ErrorCode.INVALID_REQUEST]


async def test_what_is_not_here(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    assert (await list_offset(client, "nowhere", LATEST)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ahead = await list_offset(client, "t", LATEST, current_leader_epoch=3)
    assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", [0, 1, 7, 11])
async def test_of_a_follower_only_debuggers_learn_offsets(broker: InProcess, client: Client, version: int) -> None:
    await given_records(broker, client)
    partition = broker.server.broker.replicas.partition("t", 0)
    partition.become(Following(2, 7, 1), 0)
    timestamps = (LATEST, EARLIEST, MAX_TIMESTAMP) if version >= 7 else (LATEST, EARLIEST)
    for timestamp in timestamps:
        for replica_id in (CONSUMER, OTHER_BROKER):
            refused = await list_offset(client, "t", timestamp, version=version, replica_id=replica_id)
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    listed = [await list_offset(client, "t", one, version=version, replica_id=DEBUGGER) for one in timestamps]
    assert {one.error_code for one in listed} == {ErrorCode.NONE}
    expected = [[5], [0]] if version == 0 else [5, 0, 3][: len(timestamps)]
    assert [one.old_style_offsets if version == 0 else one.offset for one in listed] == expected


async def test_a_debugger_is_held_to_the_leader_epoch_and_kept_from_a_log_that_is_cut(
    broker: InProcess, client: Client
) -> None:
    await given_records(broker, client)
    partition = broker.server.broker.replicas.partition("t", 0)
    partition.become(Following(2, 7, 1), 0)
    fenced = await list_offset(client, "t", LATEST, replica_id=DEBUGGER, current_leader_epoch=6)
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    partition.truncation = Truncation()
    cut = await list_offset(client, "t", LATEST, replica_id=DEBUGGER)
    assert cut.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_where_an_epoch_ended(broker: InProcess, client: Client) -> None:
    await given_records(broker, client)
    for topic, epoch, expected in (
        ("t", 0, (ErrorCode.NONE, 0, 5)),
        ("t", 7, (ErrorCode.NONE, -1, -1)),
        ("nowhere", 0, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
    ):
        requested = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[requested])])
        answer = await client.ask(request, 4, OffsetForLeaderEpochResponse)
        end = answer.topics[0].partitions[0]
        assert (end.error_code, end.leader_epoch, end.end_offset) == expected


async def test_a_partition_may_have_another_leader_once_its_records_were_looked_at(
    broker: InProcess, client: Client
) -> None:
    await given_records(broker, client)
    partition = ListOffsetsPartition(partition_index=0, timestamp=MADE_MS + 2)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    client.send(request_frame(request, 9))
    assert not client.wire.sent
    broker.server.broker.replicas.partition("t", 0).become(Following(2, 7, 1), 0)
    (frame,) = await client.frames(1)
    answer = decode_response(frame, ApiKey.LIST_OFFSETS, 9, ListOffsetsResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
