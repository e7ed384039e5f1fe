"""Tests the new offsets of `odradek group reset` and `odradek share reset`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from commands.errors import CommandError
from commands.groups.reset import offsets_in
from commands.printing import Output
from commands.session import Session
from commands.words.share import reset
from protocol.errors import ErrorCode
from protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from protocol.types import TopicPartition
from tests.commands.scripted_cluster import TOPIC_ID, ScriptedCluster

END = 10


def described(*codes: int) -> DescribeShareGroupOffsetsResponse:
    """Returns the offsets of topic jobs: offset 3 in each partition without an error."""
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=-1 if code else 3, leader_epoch=0, lag=-1 if code else 7,
            error_code=code, error_message=None,
        )
        for index, code in enumerate(codes)
    ]  # fmt: skip
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="jobs", topic_id=TOPIC_ID, partitions=partitions)
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic], error_code=0, error_message=None)
    return DescribeShareGroupOffsetsResponse(groups=[group])


def bounds(request: object) -> ListOffsetsResponse:
    assert isinstance(request, ListOffsetsRequest)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index, error_code=0,
                        offset=END if asked.timestamp == -1 else 0, timestamp=-1,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )  # fmt: skip


@pytest.fixture
def cluster() -> ScriptedCluster:
    cluster = ScriptedCluster(jobs=3)
    cluster.answer(ListOffsetsRequest, bounds)
    cluster.answer(AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse(error_code=0, responses=[]))
    return cluster


async def rows_of(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[dict[str, object]]]:
    """Returns the exit code and the rows of `odradek share reset g`."""
    options = argparse.Namespace(group="g", to=None, shift=None, to_group=None, to_file=None, topic=[], yes=True)
    for word in words:
        name, _, value = word.partition("=")
        setattr(options, name, int(value) if name == "shift" else [value] if name == "topic" else value)
    status = await reset(Session(cluster.client, Output("json"), options))
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("words", [("to=start",), ("shift=2",), ("to=start", "topic=jobs"), ("to_group=other",)])
async def test_a_partition_whose_offset_is_not_known_is_a_row_with_its_error(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    cluster.answer(DescribeShareGroupOffsetsRequest, described(0, ErrorCode.COORDINATOR_NOT_AVAILABLE, 0))
    status, rows = await rows_of(cluster, capsys, *words)
    assert status == 1
    assert [(row["partition"], row.get("result")) for row in rows] == [(0, "set"), (1, None), (2, "set")]
    assert "COORDINATOR_NOT_AVAILABLE" in str(rows[1]["error"])
    (written,) = cluster.requests(AlterShareGroupOffsetsRequest)
    assert [one.partition_index for topic in written.topics for one in topic.partitions] == [0, 2]


async def test_other_partitions_than_the_named_do_not_matter(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answer(DescribeShareGroupOffsetsRequest, described(0, ErrorCode.COORDINATOR_NOT_AVAILABLE, 0))
    status, rows = await rows_of(cluster, capsys, "to=end", "topic=jobs:2")
    assert (status, [(row["partition"], row["new"]) for row in rows]) == (0, [(2, END)])


async def test_without_any_known_offset_nothing_is_written(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answer(DescribeShareGroupOffsetsRequest, described(*[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3))
    status, rows = await rows_of(cluster, capsys, "to=start")
    assert (status, len(rows)) == (1, 3)
    assert cluster.requests(AlterShareGroupOffsetsRequest) == []


async def test_a_share_group_takes_the_exported_offsets_of_a_consumer_group(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text('"jobs",0,5\njobs,2,99\n')
    cluster.answer(DescribeShareGroupOffsetsRequest, described())
    status, rows = await rows_of(cluster, capsys, f"to_file={plan}")
    assert (status, [(row["partition"], row["new"]) for row in rows]) == (0, [(0, 5), (2, END)])


def test_a_file_of_offsets_has_lines_of_json_or_csv() -> None:
    lines = '{"topic": "a", "partition": 0, "offset": 1}\n\nb,1,2\n"c",2,3\n'
    lines += '{"partitions": [{"topic": "d", "partition": 0, "start": 4}]}'
    offsets = {("a", 0): 1, ("b", 1): 2, ("c", 2): 3, ("d", 0): 4}
    assert offsets_in(lines, "f") == {TopicPartition(*place): offset for place, offset in offsets.items()}


@pytest.mark.parametrize(
    "line", ["a,0", "g,a,0,1", "a,x,1", "a,0,", '"a', "5", "null", "[]", '{"topic": "a", "offset": 1}']
)
def test_another_line_is_named(line: str) -> None:
    with pytest.raises(CommandError, match="--to-file f line 2: expected topic, partition and offset"):
        offsets_in(f"a,0,1\n{line}", "f")
