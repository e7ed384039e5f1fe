"""Tests that a follower's Fetch by the short cut has the same answer and the same effects as by the general way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.replica.partition import Partition
from coordinator.replication.roles import Leading
from protocol.api_key import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from tests.broker.fetch.test_wire import BODY, filled
from tests.broker.following import FOLLOWER, follow
from tests.broker.inprocess import InProcess, decode_response, parse_by, parsed_in_place, request_frame
from tests.broker.produce.test_wire import batch
from tests.broker.test_listener import all_frames

VERSIONS = (15, 17, 18)
VERSION = 17
STRANGER = 9
ENDS = (203, 0, 101)
"""The log ends of the three partitions."""

Named = tuple[int, int]
"""Partition and offset."""


def fetching(
    topic_id: bytes,
    *partitions: Named,
    broker_id: int = FOLLOWER,
    epoch: int = 0,
    last_epoch: int = 0,
    **fields: Any,
) -> FetchRequest:
    named = [
        FetchPartition(
            partition=index,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        for index, offset in partitions
    ]
    state = ReplicaState(replica_id=broker_id, replica_epoch=-1)
    request = FetchRequest(
        replica_state=state, max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic_id=topic_id, partitions=[])]
    )
    request.topics[0].partitions = named
    for name, value in fields.items():
        setattr(request, name, value)
    return request


CASES: dict[str, tuple[list[Named], dict[str, Any]]] = {
    "at the beginning": ([(0, 0), (2, 0)], {}),
    "from within": ([(0, 200), (2, 1)], {}),
    "at the end": ([(0, 203)], {}),
    "at all ends": ([(0, 203), (1, 0), (2, 101)], {}),
    "beyond the end": ([(0, 999), (2, 0)], {}),
    "in a session": ([(0, 0), (2, 101)], {"session_epoch": 0}),
    "of a newer epoch": ([(0, 0)], {"epoch": 7}),
    "with records of a newer epoch": ([(0, 100)], {"last_epoch": 7}),
    "of a broker without a replica": ([(0, 0)], {"broker_id": STRANGER}),
    "unknown partition": ([(0, 0), (9, 0)], {}),
    "limited as a whole": ([(0, 0), (2, 0)], {"max_bytes": 17_000}),
    "without an epoch": ([(0, 203), (2, 0)], {"epoch": -1, "last_epoch": -1}),
}


async def followed(broker: InProcess) -> tuple[bytes, list[Partition]]:
    topic_id = await filled(broker)
    partitions = sorted(
        (one for one in broker.server.broker.replicas if one.name.topic == "t"), key=lambda one: one.name
    )
    for partition in partitions:
        follow(partition)
    return topic_id, partitions


async def outcome(directory: Path, version: int, case: str) -> tuple[bytes, list[object]]:
    """Returns the answer, and afterwards the leader's knowledge of its follower and of the committed records."""
    named, fields = CASES[case]
    async with InProcess(directory / str(version)) as broker:
        topic_id, partitions = await followed(broker)
        broker.server.broker.fetches.sessions.new_id = lambda: 77
        client = broker.client()
        client.send(request_frame(fetching(topic_id, *named, **fields), version))
        answer = b"".join(await all_frames(client, 1)).replace(topic_id, bytes(16))
        return answer, [progress(partition) for partition in partitions]


def progress(partition: Partition) -> object:
    role = partition.role
    assert isinstance(role, Leading)
    follower = role.followers[FOLLOWER]
    return follower.log_end_offset, follower.log_start_offset, follower.broker_epoch, partition.high_watermark


@pytest.mark.parametrize("case", CASES)
async def test_both_ways_answer_and_note_the_same(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast_way = await outcome(tmp_path / "fast", VERSION, case)
    parse_by(monkeypatch, ApiKey.FETCH, None)
    assert fast_way == await outcome(tmp_path / "general", VERSION, case)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_follower_takes_the_short_cut(version: int, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id, _ = await followed(broker)
        frame = request_frame(fetching(topic_id, (0, 0), (2, 0)), version)
        assert parsed_in_place(broker, ApiKey.FETCH, version, memoryview(frame), BODY) is not None


async def test_a_session_goes_on_by_what_has_changed(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id, partitions = await followed(broker)
        client = broker.client()
        first = await client.ask(fetching(topic_id, (0, 0), (2, 0), session_epoch=0), VERSION, FetchResponse)
        named = fetching(topic_id, (0, 203), session_id=first.session_id, session_epoch=1)
        frame = request_frame(named, 17)
        assert parsed_in_place(broker, ApiKey.FETCH, 17, memoryview(frame), BODY) is not None
        client.send(frame)
        assert progress(partitions[0]) == (203, 0, -1, 203)
        assert progress(partitions[2]) == (0, 0, -1, 101)


async def test_one_that_is_cut_anywhere_is_left_alone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id, partitions = await followed(broker)
        before = [progress(partition) for partition in partitions]
        whole = request_frame(fetching(topic_id, (0, 203)), 17)
        for cut in range(BODY, len(whole)):
            assert parsed_in_place(broker, ApiKey.FETCH, 17, memoryview(whole[:cut]), BODY) is None
        assert [progress(partition) for partition in partitions] == before


async def test_what_is_appended_meanwhile_ends_its_wait(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id, partitions = await followed(broker)
        client = broker.client()
        client.send(request_frame(fetching(topic_id, (0, 203), max_wait_ms=60_000), VERSION))
        assert not client.wire.sent
        partitions[0].append(memoryview(bytearray(batch(2))), 1_700_000_000_000)
        (frame,) = await all_frames(client, 1)
        (answer,) = decode_response(frame, ApiKey.FETCH, VERSION, FetchResponse).responses[0].partitions
        assert (answer.high_watermark, bool(answer.records)) == (203, True)
