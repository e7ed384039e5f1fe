"""Tests DescribeShareGroupOffsets: the states of share partitions are read together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.share import administration
from broker.share.state_operations import ReadSummary
from coordinator.share.key import ShareKey
from coordinator.share.shard import Summary
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)
from tests.broker.inprocess import InProcess
from tests.waiting import until


class SlowPersister:
    """Answers reads once a test says so."""

    def __init__(self) -> None:
        self.reads: dict[ShareKey, asyncio.Future[Summary]] = {}

    def submit(self, operation: ReadSummary) -> asyncio.Future[Summary]:
        answer: asyncio.Future[Summary] = asyncio.get_running_loop().create_future()
        self.reads[operation.key] = answer
        return answer


async def test_the_coordinators_of_all_partitions_are_asked_before_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with InProcess(tmp_path) as served:
        one, two = await served.create_topic("one", 2), await served.create_topic("two")
        persister = SlowPersister()
        monkeypatch.setattr(served.server.broker.share_groups, "persister", persister)
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name="one", partitions=[1, 0]),
            DescribeShareGroupOffsetsRequestTopic(topic_name="absent", partitions=[0]),
            DescribeShareGroupOffsetsRequestTopic(topic_name="two", partitions=[0]),
        ]
        groups = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=topics) for name in ("g", "h")]
        request = DescribeShareGroupOffsetsRequest(groups=groups)
        asked = asyncio.ensure_future(served.client().ask(request, 1, DescribeShareGroupOffsetsResponse))
        of_group = [(one, 1), (one, 0), (two, 0)]
        keys = [ShareKey(group, topic_id, index) for group in ("g", "h") for topic_id, index in of_group]
        await until(lambda: len(persister.reads) == len(keys))
        for offset, key in enumerate(keys):
            if key == keys[-1]:
                persister.reads[key].set_exception(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            else:
                persister.reads[key].set_result(Summary(start_offset=offset))
        answer = await asked
    assert [
        (group.group_id, topic.topic_name, partition.partition_index, partition.start_offset, partition.error_code)
        for group in answer.groups
        for topic in group.topics
        for partition in topic.partitions
    ] == [
        ("g", "absent", 0, -1, 0),
        ("g", "one", 1, 0, 0),
        ("g", "one", 0, 1, 0),
        ("g", "two", 0, 2, 0),
        ("h", "absent", 0, -1, 0),
        ("h", "one", 1, 3, 0),
        ("h", "one", 0, 4, 0),
        ("h", "two", 0, -1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]


async def test_a_coordinator_that_does_not_answer_costs_its_partitions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "DESCRIBE_TIMEOUT_S", 1)
    async with InProcess(tmp_path) as served:
        topic_id = await served.create_topic("one", 2)
        persister = SlowPersister()
        monkeypatch.setattr(served.server.broker.share_groups, "persister", persister)
        topic = DescribeShareGroupOffsetsRequestTopic(topic_name="one", partitions=[0, 1])
        group = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic])
        request = DescribeShareGroupOffsetsRequest(groups=[group])
        asked = asyncio.ensure_future(served.client().ask(request, 1, DescribeShareGroupOffsetsResponse))
        await until(lambda: len(persister.reads) == 2)
        persister.reads[ShareKey("g", topic_id, 0)].set_result(Summary(start_offset=7))
        (described,) = (await asked).groups[0].topics
    assert [(one.start_offset, one.error_code) for one in described.partitions] == [
        (7, 0),
        (-1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]
    assert persister.reads[ShareKey("g", topic_id, 1)].cancelled()
