"""The offsets of share groups: where their partitions start, set and forgotten, and what their coordinators have on
record behind that (KIP-932, KIP-1226)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient, CoordinatorKind
from commands.errors import explain, raise_if
from commands.groups.offsets import by_topic
from commands.printing import Row
from commands.records.positions import Offsets
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from protocol.messages.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateData,
    StateBatch,
)
from protocol.types import TopicPartition, Uuid, uuid_to_text

DELIVERY_STATES: Final = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}
"""The states of records in a state batch (org.apache.kafka.server.share.fetch.RecordState; ARCHIVING is KIP-1191)."""


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


async def start_offsets(cluster: ClusterClient, group: str) -> Offsets:
    """Returns the start offset of each share partition that has one."""
    return {
        TopicPartition(str(row["topic"]), int(str(row["partition"]))): start
        for row in await share_rows(cluster, group)
        if isinstance(start := row["start"], int)
    }


async def set_start_offsets(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Sets where share partitions start; records behind it become available again. Returns why some are not set."""
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=index, start_offset=offsets[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
    answer = await cluster.coordinated(CoordinatorKind.GROUP, group, request, AlterShareGroupOffsetsResponse)
    raise_if(f"group {group}", answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.topic_name, one.partition_index): explain(one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code
    }


async def forget_start_offsets(cluster: ClusterClient, group: str, topics: Iterable[str]) -> dict[str, str | None]:
    """Deletes what a share group has of topics; returns for each why it is still there, if it is."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    )
    answer = await cluster.coordinated(CoordinatorKind.GROUP, group, request, DeleteShareGroupOffsetsResponse)
    raise_if(f"group {group}", answer.error_code, answer.error_message)
    return {
        topic.topic_name: explain(topic.error_code, topic.error_message) if topic.error_code else None
        for topic in answer.responses
    }


async def state_rows(cluster: ClusterClient, group: str) -> list[Row]:
    """Returns a row for each range of records behind a start offset of which share coordinators have a state."""
    starts = await start_offsets(cluster, group)
    topics = await cluster.topics(sorted({place.topic for place in starts}))
    places = [
        (TopicPartition(topic.name or "", one.partition_index), topic.topic_id, one.leader_epoch)
        for topic in topics
        for one in topic.partitions
        if TopicPartition(topic.name or "", one.partition_index) in starts
    ]
    batches = await cluster.together(_state_batches(cluster, group, *place) for place in places)
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "first": batch.first_offset,
            "last": batch.last_offset,
            "state": DELIVERY_STATES.get(batch.delivery_state, str(batch.delivery_state)),
            "deliveries": batch.delivery_count,
        }
        for (place, _, _), of_place in zip(places, batches, strict=True)
        for batch in of_place
    ]


async def _state_batches(
    cluster: ClusterClient, group: str, place: TopicPartition, topic_id: Uuid, leader_epoch: int
) -> list[StateBatch]:
    """Asks a share partition's coordinator. The leader epoch is the one that the leader itself has read with: a lower
    one is fenced, and a higher one would fence the leader."""
    data = ReadStateData(
        topic_id=topic_id, partitions=[PartitionData(partition=place.partition, leader_epoch=leader_epoch)]
    )
    answer = await cluster.coordinated(
        CoordinatorKind.SHARE,
        f"{group}:{uuid_to_text(topic_id)}:{place.partition}",
        ReadShareGroupStateRequest(group_id=group, topics=[data]),
        ReadShareGroupStateResponse,
        code=lambda answer: answer.results[0].partitions[0].error_code,
    )
    result = answer.results[0].partitions[0]
    raise_if(f"group {group}, {place}", result.error_code, result.error_message)
    return result.state_batches
