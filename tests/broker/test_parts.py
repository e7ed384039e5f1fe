"""Tests large requests: a thread decodes them, and they are answered part by part."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from broker.dispatch.api import Entries
from broker.dispatch.parts import PART_ENTRIES, Answers, RequestPart, parts, size_of
from broker.dispatch.route import MAX_BYTES_ON_LOOP, Route
from broker.request.context import Context
from broker.workers import MAX_USUAL_BYTES
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from protocol.types import Buffer
from tests.broker.doors import OPTIONS, furnished
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame
from tests.group_requests import fetched_group

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
MANY = 2 * PART_ENTRIES + 1


def topic(name: str, partitions: int) -> DeleteRecordsTopic:
    requested = [DeleteRecordsPartition(partition_index=index, offset=0) for index in range(partitions)]
    return DeleteRecordsTopic(name=name, partitions=requested)


def topics_of(part: RequestPart) -> list[Any]:
    return part.entries


def test_a_request_is_cut_by_its_entries_and_by_those_nested_in_them() -> None:
    small = [topic(f"small-{number}", 1) for number in range(PART_ENTRIES + 1)]
    cut = list(parts([*small, topic("large", MANY)], Entries("partitions", "partitions")))
    assert [(len(part.entries), part.continued) for part in cut] == [
        (PART_ENTRIES, 0),
        (1, 0),
        (1, 0),
        (1, 1),
        (1, 1),
    ]
    assert sum(len(entry.partitions) for part in cut for entry in topics_of(part)) == PART_ENTRIES + 1 + MANY


def test_a_request_is_cut_at_each_level() -> None:
    groups = [group("small", topics=2, partitions=1), group("large", topics=2, partitions=MANY)]
    row = Entries("topics", "topics", Entries("partition_indexes", "partitions"))
    cut = list(parts(groups, row))
    assert [part.continued for part in cut] == [0, 0, 2, 2, 1, 2, 2]
    assert max(size_of(entry, row) for part in cut for entry in part.entries) == PART_ENTRIES


def group(group_id: str, topics: int, partitions: int) -> OffsetFetchRequestGroup:
    return fetched_group(group_id, {f"topic-{number}": range(partitions) for number in range(topics)})


def test_answers_to_entries_of_the_same_name_are_one() -> None:
    gathered: list[Any] = [topic("a", 2)]
    answers = Answers(Entries("topics", "topics", Entries("partitions", "partitions"), key="name"), gathered)
    answers.add([topic("b", 1), topic("a", 1)], continued=0)
    assert [(one.name, len(one.partitions)) for one in gathered] == [("a", 3), ("b", 1)]


def test_the_last_answer_to_an_entry_counts() -> None:
    first, last = (
        DeleteRecordsPartition(partition_index=1, offset=1),
        DeleteRecordsPartition(partition_index=1, offset=2),
    )
    gathered: list[Any] = [first]
    Answers(Entries("partitions", "partitions", key="partition_index"), gathered).add([last], continued=0)
    assert gathered == [last]


async def test_a_group_of_many_topics_is_answered_as_one(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as served:
        await furnished(served)
        groups = [group("group", topics=3, partitions=PART_ENTRIES), group("another", topics=1, partitions=1)]
        client = served.client()
        client.send(request_frame(OffsetFetchRequest(groups=groups, require_stable=False), 9))
        (frame,) = await client.frames(1)
        answer = decode_response(frame, ApiKey.OFFSET_FETCH, 9, OffsetFetchResponse)
        answered = {
            one.group_id: [(t.name, [p.partition_index for p in t.partitions]) for t in one.topics]
            for one in answer.groups
        }
        assert answered == {one.group_id: [(t.name, t.partition_indexes) for t in one.topics or ()] for one in groups}


async def test_a_partition_that_two_parts_name_is_refused_once(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        indexes = [*range(PART_ENTRIES + 1), 0]
        partitions = [
            ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=-1) for index in indexes
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])
        client = served.client()
        client.send(request_frame(request, 7))
        (frame,) = await client.frames(1)
        (answered,) = decode_response(frame, ApiKey.LIST_OFFSETS, 7, ListOffsetsResponse).topics
        assert [one.partition_index for one in answered.partitions] == indexes[:-1]
        assert answered.partitions[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "topics",
    [[topic(f"absent-{number}", 1) for number in range(MANY)], [topic("absent", MANY), topic("another", 1)]],
    ids=["topics", "partitions"],
)
async def test_an_answer_in_parts_has_all_of_the_entries(topics: list[DeleteRecordsTopic], tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.send(request_frame(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2))
        (frame,) = await client.frames(1)
        answer = decode_response(frame, ApiKey.DELETE_RECORDS, 2, DeleteRecordsResponse)
        answered = [(one.name, [p.partition_index for p in one.partitions]) for one in answer.topics]
        assert answered == [(one.name, [p.partition_index for p in one.partitions]) for one in topics]
        codes = {partition.error_code for one in answer.topics for partition in one.partitions}
        assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_others_are_answered_while_a_thread_decodes_a_large_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, decode = threading.Event(), Route.decode

    def slow(route: Route, *arguments: Any) -> object:
        if route.key is ApiKey.DELETE_RECORDS:
            go_on.wait(LONG_S)
        return decode(route, *arguments)

    monkeypatch.setattr(Route, "decode", slow)
    async with InProcess(tmp_path) as served:
        client = served.client()
        frame = request_frame(DeleteRecordsRequest(topics=[topic("absent", MANY)], timeout_ms=1000), 2)
        assert len(frame) > MAX_BYTES_ON_LOOP
        client.send(frame)
        assert (await served.client().ask(HELLO, 3, ApiVersionsResponse)).error_code == 0
        assert not client.wire.sent
        go_on.set()
        assert len(await client.frames(1)) == 1


async def test_a_large_request_does_not_wait_for_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, decode = threading.Event(), Route.decode

    def slow(route: Route, version: int, frame: memoryview, position: int) -> object:
        if len(frame) > MAX_USUAL_BYTES:
            go_on.wait(LONG_S)
        return decode(route, version, frame, position)

    monkeypatch.setattr(Route, "decode", slow)
    largest = DeleteRecordsRequest(topics=[topic("absent", MAX_USUAL_BYTES // 8)], timeout_ms=1000)
    large = DeleteRecordsRequest(topics=[topic("absent", MANY)], timeout_ms=1000)
    async with InProcess(tmp_path) as served:
        waiting = [served.client() for _ in range(3)]
        for client in waiting:
            client.send(request_frame(largest, 2))
        answer = await served.client().ask(large, 2, DeleteRecordsResponse)
        assert len(answer.topics[0].partitions) == MANY
        assert not any(client.wire.sent for client in waiting)
        go_on.set()
        for client in waiting:
            assert len(await client.frames(1)) == 1


@pytest.mark.source_only
@pytest.mark.parametrize(("resources", "by_thread"), [(1, False), (40, True)])
async def test_a_thread_encodes_a_large_answer_to_a_small_request(
    resources: int, by_thread: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, threads = Route._frame, set[bool]()

    def encoded(route: Route, context: Context, response: object) -> list[Buffer]:
        threads.add(threading.current_thread() is not threading.main_thread())
        return encode(route, context, response)

    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        monkeypatch.setattr(Route, "_frame", encoded)
        resource = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
        request = DescribeConfigsRequest(resources=[resource] * resources)
        answer = await served.client().ask(request, 4, DescribeConfigsResponse)
        assert len(answer.results) == resources
        assert threads == {by_thread}
