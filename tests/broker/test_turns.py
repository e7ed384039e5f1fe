"""Tests requests with many entries: other clients are served meanwhile, and the size of answers is limited."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.dispatch import call as call_module
from broker.replica.replicas import Replicas
from broker.request import bounded_answer
from broker.request.turns import ENTRIES, REQUESTS, TURN_MS, Turn, Turns
from protocol.api_key import ApiKey
from protocol.errors import MAX_MESSAGE_LENGTH, ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from protocol.messages.delete_share_group_state import DeleteStateData as DeletedTopic
from protocol.messages.delete_share_group_state import PartitionData as DeletedPartition
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_producers import DescribeProducersRequest
from protocol.messages.describe_producers import TopicRequest as ProducersTopic
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from protocol.schema import identity
from tests.broker.asking import PRODUCE_VERSION, batch
from tests.broker.inprocess import InProcess, decode_response, request_frame
from tests.clock import ManualClock
from tests.log_lines import Line, errors
from tests.waiting import until

COUNT = 20 * ENTRIES
OPTIONS = {
    f"{name}.{what}": "1"
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for what in ("num.partitions", "replication.factor")
}
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
GROUPS = [f"group-{number}" for number in range(COUNT)]
PARTITIONS = [*range(COUNT)]


@pytest.fixture(autouse=True)
def turns_that_end_by_count() -> None:
    """Ends turns by the time of a clock that the tests set."""


def many() -> Iterator[tuple[str, object]]:
    """Returns requests with many entries, by name."""
    topics = [
        TopicProduceData(name="t", partition_data=[PartitionProduceData(index=i, records=b"") for i in PARTITIONS])
    ]
    yield "produce", ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
    yield (
        "describe_configs",
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)] * COUNT
        ),
    )
    yield "describe_groups", DescribeGroupsRequest(groups=GROUPS)
    yield "consumer_group_describe", ConsumerGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False)
    yield "share_group_describe", ShareGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False)
    yield "streams_group_describe", StreamsGroupDescribeRequest(group_ids=GROUPS, include_authorized_operations=False)
    yield "describe_transactions", DescribeTransactionsRequest(transactional_ids=GROUPS)
    yield (
        "describe_producers",
        DescribeProducersRequest(topics=[ProducersTopic(name="t", partition_indexes=PARTITIONS)]),
    )
    yield "find_coordinator", FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS)
    offsets = [ListOffsetsPartition(partition_index=i, current_leader_epoch=-1, timestamp=-1) for i in PARTITIONS]
    yield "list_offsets", ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=offsets)])
    epochs = [OffsetForLeaderPartition(partition=i, current_leader_epoch=-1, leader_epoch=0) for i in PARTITIONS]
    yield (
        "offset_for_leader_epoch",
        OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=epochs)]),
    )
    yield (
        "write_txn_markers",
        WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=[WritableTxnMarkerTopic(name="t", partition_indexes=PARTITIONS)],
                    coordinator_epoch=0,
                )
            ]
        ),
    )
    deleted = [DeletedPartition(partition=i) for i in PARTITIONS]
    yield (
        "delete_share_group_state",
        DeleteShareGroupStateRequest(
            group_id="g", topics=[DeletedTopic(topic_id=bytes(15) + b"\1", partitions=deleted)]
        ),
    )
    shared = DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=PARTITIONS)
    yield (
        "describe_share_group_offsets",
        DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[shared])]),
    )
    named = [FetchPartition(partition_index=i, acknowledgement_batches=[]) for i in PARTITIONS]
    yield (
        "share_fetch",
        ShareFetchRequest(
            group_id="g", member_id="m", share_session_epoch=0, max_wait_ms=0, min_bytes=1, max_bytes=1, max_records=1,
            batch_size=1, topics=[FetchTopic(topic_id=bytes(15) + b"\1", partitions=named)], forgotten_topics_data=[],
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "request_of_many"), [pytest.param(*one, id=one[0]) for one in many()])
async def test_others_are_served_while_a_request_of_many_entries_is_at_work(
    name: str, request_of_many: object, tmp_path: Path
) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        await served.create_topic("t")
        served.server.broker.clock = ManualClock(tick_ms=1)
        client, other = served.client(), served.client()
        version = identity(type(request_of_many)).versions.last if name != "produce" else PRODUCE_VERSION
        client.send(request_frame(request_of_many, version))
        assert not client.wire.sent
        assert (await other.ask(HELLO, 3, ApiVersionsResponse)).error_code == 0
        assert not client.wire.sent, "the other's turn came first"
        await client.frames(1)


async def test_all_of_a_large_produce_is_appended_though_its_client_goes(tmp_path: Path) -> None:
    """With acks=0, the producer may disconnect as soon as it has sent the request."""
    async with InProcess(tmp_path, OPTIONS) as served:
        await served.create_topic("t", partitions=2 * ENTRIES)
        served.server.broker.clock = ManualClock(tick_ms=1)
        client = served.client()
        partitions = [PartitionProduceData(index=i, records=batch(b"x")) for i in range(2 * ENTRIES)]
        topics = [TopicProduceData(name="t", partition_data=partitions)]
        client.send(request_frame(ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION))
        client.connection.connection_lost(None)
        partition = served.server.broker.replicas.partition("t", 2 * ENTRIES - 1)
        assert partition.log_end_offset == 0
        await until(lambda: partition.log_end_offset)
        assert served.server.broker.replicas.partition("t", 0).log_end_offset == 1


@pytest.mark.parametrize("is_bug", [False, pytest.param(True, marks=pytest.mark.source_only)])
async def test_the_error_of_a_request_whose_client_has_gone_is_taken(
    is_bug: bool, tmp_path: Path, logged: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With acks=0 an error would close the connection."""
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    async with InProcess(tmp_path, OPTIONS) as served:
        served.server.broker.clock = ManualClock(tick_ms=1)
        client = served.client()
        partitions = [PartitionProduceData(index=i, records=batch(b"x")) for i in range(2 * ENTRIES)]
        topics = [TopicProduceData(name="absent", partition_data=partitions)]
        client.send(request_frame(ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION))
        client.connection.connection_lost(None)
        if is_bug:
            monkeypatch.setattr(Replicas, "leader", lambda *_: 1 / 0)
    gc.collect()
    assert bool(unheard or errors(logged)) is is_bug


async def test_a_topic_may_go_while_a_large_produce_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        await served.create_topic("t", partitions=2 * ENTRIES)
        served.server.broker.clock = ManualClock(tick_ms=1)
        client = served.client()
        partitions = [PartitionProduceData(index=i, records=batch(b"x")) for i in range(2 * ENTRIES)]
        topics = [TopicProduceData(name="t", partition_data=partitions)]
        client.send(request_frame(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), PRODUCE_VERSION))
        assert not client.wire.sent
        monkeypatch.setattr(Replicas, "topic", lambda replicas, name: {})
        (frame,) = await client.frames(1)
        response = decode_response(frame, ApiKey.PRODUCE, PRODUCE_VERSION, ProduceResponse)
        assert {answer.error_code for answer in response.responses[0].partition_responses} == {ErrorCode.NONE}


@pytest.mark.source_only
async def test_an_answer_has_only_so_many_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_module, "MAX_ANSWER_ITEMS", 100)
    async with InProcess(tmp_path, OPTIONS) as served:
        await served.create_topic("t")
        client = served.client()
        resource = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
        client.send(request_frame(DescribeConfigsRequest(resources=[resource] * COUNT), 4))
        await until(lambda: client.wire.closing)
        assert not client.wire.sent
        assert (await served.client().ask(HELLO, 3, ApiVersionsResponse)).error_code == 0


async def test_an_answer_has_only_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answer, "MAX_ANSWER_BYTES", 10_000)
    async with InProcess(tmp_path, OPTIONS) as served:
        client = served.client()
        client.send(request_frame(DescribeGroupsRequest(groups=GROUPS), 5))
        await until(lambda: client.wire.closing)
        assert not client.wire.sent
        assert (await served.client().ask(HELLO, 3, ApiVersionsResponse)).error_code == 0


def test_a_turn_is_over_after_so_many_requests_or_so_long() -> None:
    clock = ManualClock(tick_ms=1)
    turn = Turn(clock)
    assert [turn.is_over(1) for _ in range(6)] == [False, False, False, False, True, True]
    assert Turn(ManualClock(tick_ms=1)).is_over(REQUESTS)


async def test_entries_are_answered_in_their_order() -> None:
    turns = Turns(ManualClock(tick_ms=1))
    assert await turns.map(str, PARTITIONS) == [str(index) for index in PARTITIONS]

    async def text(index: int) -> str:
        return str(index)

    assert await turns.map_awaited(text, PARTITIONS) == [str(index) for index in PARTITIONS]
    assert await turns.map_together(text, PARTITIONS) == [str(index) for index in PARTITIONS]


async def test_entries_that_wait_are_answered_in_batches() -> None:
    begun: list[int] = []
    go_on = asyncio.Event()

    async def answer(index: int) -> int:
        begun.append(index)
        await go_on.wait()
        return index

    answers = asyncio.ensure_future(Turns(ManualClock()).map_together(answer, range(2 * ENTRIES)))
    await until(lambda: len(begun) == ENTRIES)
    go_on.set()
    assert await answers == begun == [*range(2 * ENTRIES)]


async def test_a_message_that_repeats_a_long_text_is_cut(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        config = CreatableTopicConfig(name="cleanup.policy", value="x" * 32_767)
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[config])
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        answer = await served.client().ask(request, 2, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.INVALID_CONFIG
        assert len(answer.topics[0].error_message or "") == MAX_MESSAGE_LENGTH


async def test_a_text_that_an_answer_cannot_carry_closes_the_connection(tmp_path: Path, logged: list[Line]) -> None:
    """Twenty thousand bytes that are not UTF-8 are decoded to a text of sixty thousand bytes."""
    async with InProcess(tmp_path, OPTIONS) as served:
        client = served.client()
        body = struct.pack(">ih", 1, 20_000) + b"\xff" * 20_000
        header = struct.pack(">hhih", ApiKey.DESCRIBE_GROUPS, 0, 1, -1)
        client.send(struct.pack(">i", len(header) + len(body)) + header + body)
        await until(lambda: client.wire.closing)
        assert not client.wire.sent
        assert (await served.client().ask(HELLO, 3, ApiVersionsResponse)).error_code == 0
    assert not errors(logged)


async def test_one_request_after_the_other_has_its_turn() -> None:
    """Otherwise a client that sends large requests over many connections has as many turns before others have one."""
    worked: list[int] = []

    async def work(number: int) -> None:
        turns = Turns(ManualClock(tick_ms=TURN_MS))
        for _ in range(5):
            await turns.next()
            worked.append(number)

    requests = [asyncio.ensure_future(work(number)) for number in range(10)]
    await asyncio.sleep(0)  # the first turns
    requests[3].cancel()
    rounds = []
    while not all(request.done() for request in requests):
        before = len(worked)
        await asyncio.sleep(0)
        rounds.append(worked[before:])
    others = [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert max(map(len, rounds)) == 1
    assert [number for some in rounds for number in some] == others * 4
