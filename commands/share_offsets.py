"""The offsets of share groups (KIP-932)."""

from __future__ import annotations

from commands.cluster_client import ClusterClient, CoordinatorKind
from commands.errors import raise_if
from commands.printing import Row
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)


async def share_rows(cluster: ClusterClient, group: str) -> list[Row]:
    """Returns a row for each share partition: where it begins, and its lag where the cluster tells it (KIP-1226)."""
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        group,
        DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]),
        DescribeShareGroupOffsetsResponse,
        code=lambda answer: answer.groups[0].error_code,
    )
    described = answer.groups[0]
    raise_if(f"group {group}", described.error_code, described.error_message)
    rows: list[Row] = []
    for topic in sorted(described.topics, key=lambda topic: topic.topic_name):
        for one in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            raise_if(f"group {group}, {topic.topic_name}-{one.partition_index}", one.error_code, one.error_message)
            rows.append(
                {
                    "topic": topic.topic_name,
                    "partition": one.partition_index,
                    "start": one.start_offset if one.start_offset >= 0 else None,
                    "lag": one.lag if one.lag >= 0 else None,
                }
            )
    return rows
