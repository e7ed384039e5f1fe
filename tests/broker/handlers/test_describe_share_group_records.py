"""Tests DescribeShareGroupRecords: the leader answers what is in flight, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.handlers import describe_share_group_records as handler
from broker.request.authorisation import Operation, Resource
from broker.request.context import Context
from broker.share.sessions import PartitionId
from protocol.errors import ErrorCode
from protocol.messages.describe_share_group_records import (
    DeliveryReason,
    DescribeShareGroupRecordsRequest,
    DescribeShareGroupRecordsRequestPartition,
    DescribeShareGroupRecordsRequestTopic,
    DescribeShareGroupRecordsResponse,
    DescribeShareGroupRecordsResponsePartition,
)
from tests.broker.inprocess import InProcess
from tests.broker.share.test_share_fetch import GROUP, MEMBER, OPTIONS, Fetching, eventually, serving
from tests.waiting import until

ACCEPT, RELEASE = 1, 2
HIGHEST = 0x7FFFFFFFFFFFFFFF
MANY = {"group.share.max.partition.max.record.locks": "10000", "group.share.partition.max.record.locks": "10000"}


def request(
    *partitions: tuple[int, int], topic: str = "topic", group: str = GROUP, most: int = 1000
) -> DescribeShareGroupRecordsRequest:
    named = [
        DescribeShareGroupRecordsRequestPartition(partition_index=index, first_offset=first)
        for index, first in partitions
    ]
    topics = [DescribeShareGroupRecordsRequestTopic(topic_name=topic, partitions=named)]
    return DescribeShareGroupRecordsRequest(group_id=group, max_ranges=most, topics=topics)


async def ask(fetching: Fetching, asked: DescribeShareGroupRecordsRequest) -> DescribeShareGroupRecordsResponse:
    return await fetching.client.ask(asked, 0, DescribeShareGroupRecordsResponse)


async def describe(fetching: Fetching, first: int = -1, most: int = 1000) -> DescribeShareGroupRecordsResponsePartition:
    answer = await ask(fetching, request((0, first), most=most))
    ((partition,),) = [topic.partitions for topic in answer.topics]
    return partition


def ranges(partition: DescribeShareGroupRecordsResponsePartition) -> list[tuple[int, int, str, str | None]]:
    return [
        (entry.first_offset, entry.last_offset, DeliveryReason(entry.reason).name, entry.member_id)
        for entry in partition.ranges
    ]


async def test_the_leader_describes_what_is_in_flight(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        fetching.append(3)
        epoch, _ = await eventually(fetching, 0)
        fetching.append(2)
        await fetching.fetch(epoch, (0, 0, RELEASE), (1, 1, ACCEPT), max_records=0)
        described = await describe(fetching)
        assert ranges(described) == [
            (0, 0, "NOT_FETCHED", None),
            (1, 1, "DONE", None),
            (2, 2, "HELD", MEMBER),
            (3, 4, "NOT_FETCHED", None),
        ]
        assert (described.start_offset, described.end_offset, described.high_watermark) == (0, 2, 5)
        assert (described.session_count, described.waiting_count, described.is_active) == (1, 0, True)


async def test_the_group_s_options_are_in_the_answer(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        answer = await ask(fetching, request())
        assert (answer.max_delivery_count, answer.max_in_flight_records, answer.lock_duration_ms) == (5, 2000, 30_000)
        assert (answer.isolation_level, answer.is_ordered_by_key, answer.topics[0].partitions) == (0, False, [])


async def test_a_share_partition_that_is_not_loaded_stays_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        fetching.append(3)
        described = await describe(fetching)
        assert (described.is_active, described.high_watermark, described.session_count) == (False, 3, 0)
        assert (described.ranges, described.next_offset, described.start_offset) == ([], -1, -1)
        groups = fetching.broker.server.broker.share_groups
        assert groups.find(GROUP, PartitionId(fetching.topic_id, 0)) is None


async def test_absent_topics_and_partitions_have_their_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        for asked in (request((7, -1)), request((-1, -1)), request((0, -1), topic="absent")):
            ((partition,),) = [topic.partitions for topic in (await ask(fetching, asked)).topics]
            assert partition.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
            assert partition.error_message


async def test_an_unknown_group_has_no_records_in_flight(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        answer = await ask(fetching, request((0, -1), group="absent"))
        assert not answer.topics[0].partitions[0].is_active


@pytest.mark.parametrize("most", [0, -1, -(1 << 31)])
async def test_a_page_has_at_least_one_range(most: int, tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        answer = await ask(fetching, request((0, -1), most=most))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == f"max_ranges {most}: expected 1 or more"


async def test_pages_follow_each_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        fetching.append(9)
        epoch, _ = await eventually(fetching, 0)
        await fetching.fetch(epoch, *((offset, offset, ACCEPT) for offset in range(1, 9, 2)), max_records=0)
        whole = ranges(await describe(fetching))
        assert len(whole) == 9
        pages: list[tuple[int, int, str, str | None]] = []
        first = -1
        while not pages or first >= 0:
            page = await describe(fetching, first, 2)
            pages += ranges(page)
            first = page.next_offset
        assert pages == whole
        assert (await describe(fetching, HIGHEST)).ranges == []


async def loaded(fetching: Fetching, index: int) -> None:
    """Loads a share partition, as a member's first fetch does."""
    hosted = fetching.broker.server.broker.share_groups.hosted(GROUP, PartitionId(fetching.topic_id, index))
    await until(lambda: hosted.machine.is_active)


async def test_all_partitions_of_an_answer_have_a_limited_number_of_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "MAX_RANGES_TOGETHER", 1)
    async with InProcess(tmp_path, OPTIONS) as broker:
        fetching = await Fetching.begin(broker, 2)
        for index in (0, 1):
            fetching.append(1, index)
            await loaded(fetching, index)
        answer = await ask(fetching, request((0, -1), (1, -1), (0, -1)))
        first, second = answer.topics[0].partitions
        assert (len(first.ranges), first.next_offset) == (1, -1)
        assert (len(second.ranges), second.next_offset) == (0, 0)


async def test_a_partition_that_is_named_twice_is_answered_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as fetching:
        asked = request((0, -1), (0, 5))
        asked.topics *= 2
        (topic,) = (await ask(fetching, asked)).topics
        assert [partition.partition_index for partition in topic.partitions] == [0]


async def test_thousands_of_ranges_are_encoded_in_a_thread(tmp_path: Path) -> None:
    async with serving(tmp_path, **MANY) as fetching:
        fetching.append(2500)
        epoch, _ = await eventually(fetching, 0)
        await fetching.fetch(epoch, *((offset, offset, ACCEPT) for offset in range(1, 2400, 2)), max_records=0)
        first = await describe(fetching, most=10_000)
        assert len(first.ranges) == handler.MAX_RANGES
        second = await describe(fetching, first.next_offset, most=10_000)
        assert len(first.ranges) + len(second.ranges) >= 2000
        assert first.ranges[-1].last_offset + 1 == second.ranges[0].first_offset


class Permitting:
    """Authorizes a client for some types of resources only."""

    def __init__(self, *permitted: Resource) -> None:
        self.permitted = permitted
        self.asked: list[tuple[Operation, Resource, str]] = []

    def allows(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, quiet: bool = False
    ) -> bool:
        self.asked.append((operation, resource, name))
        return resource in self.permitted

    def allows_some(self, context: Context, operation: Operation, resource: Resource) -> bool:
        return resource in self.permitted


DENIED = {
    "nothing": ((), ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
    "the topic only": ((Resource.TOPIC,), ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
    "the group only": ((Resource.GROUP,), ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    "both": ((Resource.GROUP, Resource.TOPIC), ErrorCode.NONE, ErrorCode.NONE),
}


@pytest.mark.parametrize("allowed", DENIED)
async def test_describe_is_needed_for_the_group_and_each_topic(allowed: str, tmp_path: Path) -> None:
    permitted, code, partition_code = DENIED[allowed]
    async with serving(tmp_path) as fetching:
        authorizer = Permitting(*permitted)
        fetching.broker.server.broker.authorizer = authorizer
        answer = await ask(fetching, request((0, -1)))
        assert answer.error_code == code
        codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
        assert codes == ([] if partition_code is None else [partition_code])
        assert {operation for operation, _, _ in authorizer.asked} == {Operation.DESCRIBE}
