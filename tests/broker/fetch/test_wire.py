"""Tests that the short cut of Fetch gives the same answer as the general way, byte for byte, and leaves unusual
requests to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from protocol.api_key import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from tests.broker.inprocess import InProcess, parse_by, parsed_in_place, request_frame
from tests.broker.produce.test_wire import batch
from tests.broker.produce.test_wire import request as produce_request

VERSIONS = (12, 13, 15, 16, 17)
"""The versions between which the layout changes."""

BODY = 4 + 10 + len(b"test") + 1
Named = tuple[int, int, int]
"""Partition, offset, maximum bytes."""


def request(topic_id: bytes, *partitions: Named, wait_ms: int = 0, **fields: Any) -> FetchRequest:
    named = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        for index, offset, max_bytes in partitions
    ]
    topics = [FetchTopic(topic="t", topic_id=topic_id, partitions=named)]
    return FetchRequest(**{"max_wait_ms": wait_ms, "min_bytes": 1, "topics": topics, **fields})


ALL = 1 << 20
CASES: dict[str, tuple[list[Named], dict[str, Any]]] = {
    "one partition": ([(0, 0, ALL)], {}),
    "from within": ([(0, 205, ALL)], {}),
    "committed only": ([(0, 3, ALL)], {"isolation_level": 1}),
    "several": ([(2, 0, ALL), (0, 4, ALL), (1, 0, ALL)], {}),
    "one of them at its end": ([(1, 0, ALL), (0, 1, ALL)], {"isolation_level": 1}),
    "all at their ends": ([(1, 0, ALL)], {}),
    "a batch that is larger": ([(0, 0, 10)], {}),
    "a second one that is larger": ([(0, 0, 1_000), (2, 0, 50)], {}),
    "limited as a whole": ([(0, 0, ALL), (2, 0, ALL)], {"max_bytes": 17_000}),
    "no bytes at all": ([(0, 0, 0)], {"max_bytes": 0}),
    "a rack": ([(0, 0, ALL)], {"rack_id": "east"}),
    "beyond the end": ([(0, 999, ALL)], {}),
    "unknown partition": ([(0, 0, ALL), (9, 0, ALL)], {}),
    "twice the same": ([(0, 0, 100), (0, 200, ALL)], {}),
    "no partitions": ([], {}),
}
UNUSUAL: dict[str, dict[str, Any]] = {
    "a forgotten topic": {"forgotten_topics_data": [ForgottenTopic(topic="t", topic_id=bytes(16), partitions=[1])]},
    "a cluster": {"cluster_id": "x"},
    "an odd isolation level": {"isolation_level": 2},
}


async def filled(broker: InProcess) -> bytes:
    topic_id = await broker.create_topic("t", partitions=3)
    client = broker.client()
    for partition, count in ((0, 200), (2, 1), (0, 3), (2, 100)):
        client.send(request_frame(produce_request(topic_id, (partition, batch(count))), 13))
        await client.frames(1)
    return topic_id


async def answer(directory: Path, version: int, case: str) -> bytes:
    named, fields = CASES[case]
    async with InProcess(directory / str(version)) as broker:
        topic_id = await filled(broker)
        client = broker.client()
        client.send(request_frame(request(topic_id, *named, **fields), version))
        return b"".join(await client.frames(1)).replace(topic_id, bytes(16))


@pytest.mark.parametrize("case", CASES)
async def test_both_ways_answer_the_same(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast_way = [await answer(tmp_path / "fast", version, case) for version in VERSIONS]
    parse_by(monkeypatch, ApiKey.FETCH, None)
    assert fast_way == [await answer(tmp_path / "general", version, case) for version in VERSIONS]


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_usual_request_takes_the_short_cut(version: int, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        frame = request_frame(request(await filled(broker), (0, 0, ALL), (1, 0, ALL), isolation_level=1), version)
        assert parsed_in_place(broker, ApiKey.FETCH, version, memoryview(frame), BODY) is not None


@pytest.mark.parametrize("unusual", UNUSUAL)
async def test_the_unusual_is_left_alone(unusual: str, tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        frame = request_frame(request(await filled(broker), (0, 0, ALL), **UNUSUAL[unusual]), 13)
        assert parsed_in_place(broker, ApiKey.FETCH, 13, memoryview(frame), BODY) is None


async def test_a_torn_request_is_left_alone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        whole = request_frame(request(await filled(broker), (0, 0, ALL), rack_id="east"), 13)
        for cut in range(BODY, len(whole)):
            assert parsed_in_place(broker, ApiKey.FETCH, 13, memoryview(whole[:cut]), BODY) is None


async def test_one_that_waits_gets_what_is_appended(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await filled(broker)
        consumer, producer = broker.client(), broker.client()
        fetching = asyncio.create_task(
            consumer.ask(request(topic_id, (1, 0, ALL), wait_ms=60_000), 13, FetchResponse), name="consumer"
        )
        await asyncio.sleep(0)
        producer.send(request_frame(produce_request(topic_id, (1, batch(2))), 13))
        (partition,) = (await fetching).responses[0].partitions
        assert (partition.high_watermark, bool(partition.records)) == (2, True)


async def test_one_that_waits_hears_that_its_topic_is_gone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await filled(broker)
        consumer = broker.client()
        fetching = asyncio.create_task(
            consumer.ask(request(topic_id, (1, 0, ALL), wait_ms=60_000), 13, FetchResponse), name="consumer"
        )
        for _ in range(3):
            await asyncio.sleep(0)
        (partition,) = [one for one in broker.server.broker.replicas if one.name.partition == 1]
        broker.server.broker.replicas.remove(partition.name)
        assert (await fetching).responses[0].partitions[0].error_code


async def test_one_that_waits_is_told_when_the_time_is_up(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await filled(broker)
        answered = await broker.client().ask(request(topic_id, (1, 0, ALL), wait_ms=1), 13, FetchResponse)
        assert not answered.responses[0].partitions[0].records
