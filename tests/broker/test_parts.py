"""Large requests: a thread decodes them, and they are answered some entries at a time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from broker.requests.dispatch import MAX_BYTES_ON_LOOP, Route
from broker.requests.parts import PART_ENTRIES, parts
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
MANY = 2 * PART_ENTRIES + 1


def topic(name: str, partitions: int) -> DeleteRecordsTopic:
    requested = [DeleteRecordsPartition(partition_index=index, offset=0) for index in range(partitions)]
    return DeleteRecordsTopic(name=name, partitions=requested)


def test_a_request_is_cut_by_its_entries_and_by_those_nested_in_them() -> None:
    small = [topic(f"small-{number}", 1) for number in range(PART_ENTRIES + 1)]
    cut = list(parts([*small, topic("large", MANY)], "partitions"))
    assert [(len(part.entries), part.is_continued) for part in cut] == [
        (PART_ENTRIES - 1, False),
        (2, False),
        (1, False),
        (1, True),
        (1, True),
    ]
    assert sum(len(entry.partitions) for part in cut for entry in part.entries) == PART_ENTRIES + 1 + MANY


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
