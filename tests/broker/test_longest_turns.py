"""Tests that twice the entries don't block the event loop longer: the calls of a turn are counted, not its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic
from tests.broker.asking import batch
from tests.broker.call_counter import LongestTurn
from tests.broker.inprocess import LONG_S, Client, InProcess, request_frame
from tests.broker.share.test_share_fetch import GROUP, MEMBER, OPTIONS, Fetching, acquired, eventually
from tests.clock import ManualClock

Case = Callable[[Fetching, int], Awaitable[int]]

SHARE_VERSION = 2
ENTRIES = 2_000
LONGER = 1.5
"""Factor by which turns may differ by chance; a turn that goes over all entries is twice as long."""


@pytest.fixture(autouse=True)
def turns_that_end_by_count() -> None:
    """Ends turns by a clock that ticks when it is read."""


async def longest(client: Client, frame: bytes) -> int:
    """Returns the largest number of calls in a turn until the request is answered."""
    client.wire.answered.clear()
    with LongestTurn() as turn:
        client.send(frame)
        async with asyncio.timeout(LONG_S):
            await client.wire.answered.wait()
    return turn.calls


def acknowledgement(topics: list[AcknowledgeTopic], epoch: int) -> bytes:
    request = ShareAcknowledgeRequest(group_id=GROUP, member_id=MEMBER, share_session_epoch=epoch, topics=topics)
    return request_frame(request, SHARE_VERSION)


def said(first: int, last: int, *types: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))


def topics_of(count: int) -> list[AcknowledgeTopic]:
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[said(0, 0, 1)])
    return [AcknowledgeTopic(topic_id=(i + 1).to_bytes(16, "big"), partitions=[partition]) for i in range(count)]


async def many_topics(fetching: Fetching, count: int) -> int:
    await fetching.fetch(0)
    return await longest(fetching.client, acknowledgement(topics_of(count), 1))


async def many_partitions(fetching: Fetching, count: int) -> int:
    await fetching.fetch(0)
    partitions = [
        AcknowledgePartition(partition_index=i, acknowledgement_batches=[said(0, 0, 1)]) for i in range(count)
    ]
    topic = AcknowledgeTopic(topic_id=fetching.topic_id, partitions=partitions)
    return await longest(fetching.client, acknowledgement([topic], 1))


async def many_batches(fetching: Fetching, count: int) -> int:
    await fetching.fetch(0)
    batches = [said(offset, offset, 1) for offset in range(count)]
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topic = AcknowledgeTopic(topic_id=fetching.topic_id, partitions=[partition])
    return await longest(fetching.client, acknowledgement([topic], 1))


async def many_types(fetching: Fetching, count: int) -> int:
    """The records of a batch are acknowledged in turns, and written in turns."""
    fetching.append(8 * count)
    epoch, response = await eventually(fetching, 0)
    ((first, last, _),) = acquired(response)
    batches = [said(first, last, *([1, 2] * (4 * count)))]
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topic = AcknowledgeTopic(topic_id=fetching.topic_id, partitions=[partition])
    turn = await longest(fetching.client, acknowledgement([topic], epoch))
    ((_, hosted),) = fetching.broker.server.broker.share_groups.at_work()
    assert hosted.machine.next_fetch_offset() == hosted.machine.start_offset == first + 1
    return turn


async def new_session(fetching: Fetching, count: int) -> int:
    partitions = [FetchPartition(partition_index=i, acknowledgement_batches=[]) for i in range(1, count)]
    request = fetching.request(0, topics=[FetchTopic(topic_id=fetching.topic_id, partitions=partitions)])
    return await longest(fetching.client, request_frame(request, SHARE_VERSION))


async def old_session(fetching: Fetching, count: int) -> int:
    partitions = [FetchPartition(partition_index=i, acknowledgement_batches=[]) for i in range(1, count)]
    await fetching.fetch(0, topics=[FetchTopic(topic_id=fetching.topic_id, partitions=partitions)])
    return await longest(fetching.client, request_frame(fetching.request(1), SHARE_VERSION))


async def produced_partitions(fetching: Fetching, count: int, version: int) -> int:
    records = batch(b"x")
    partitions = [PartitionProduceData(index=i, records=records) for i in range(count)]
    topics = [TopicProduceData(topic_id=fetching.topic_id, name="topic", partition_data=partitions)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    return await longest(fetching.client, request_frame(request, version))


async def produced_topics(fetching: Fetching, count: int, version: int) -> int:
    partitions = [PartitionProduceData(index=0, records=batch(b"x"))]
    topics = [
        TopicProduceData(topic_id=(i + 1).to_bytes(16, "big"), name=f"t{i}", partition_data=partitions)
        for i in range(count)
    ]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    return await longest(fetching.client, request_frame(request, version))


@pytest.mark.parametrize("version", [8, 12, 13])
@pytest.mark.parametrize("case", [produced_partitions, produced_topics])
async def test_a_turn_of_produce_is_no_longer_for_twice_the_entries(
    case: Callable[[Fetching, int, int], Awaitable[int]], version: int, tmp_path: Path
) -> None:
    await compare(tmp_path, lambda fetching, count: case(fetching, count, version))


@pytest.mark.parametrize("case", [many_topics, many_partitions, many_batches, many_types, new_session, old_session])
async def test_a_turn_is_no_longer_for_twice_the_entries(case: Case, tmp_path: Path) -> None:
    await compare(tmp_path, case)


async def compare(directory: Path, case: Case) -> None:
    """Checks that no turn does more work for twice the entries."""
    turns = []
    for count in (ENTRIES, 2 * ENTRIES):
        async with InProcess(directory / str(count), OPTIONS) as broker:
            fetching = await Fetching.begin(broker)
            broker.server.broker.clock = ManualClock(tick_ms=1)
            turns.append(await case(fetching, count))
    assert turns[1] < LONGER * turns[0], turns
