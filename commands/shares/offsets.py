"""The offsets of share groups: reads, sets and deletes the start offsets, and reads the delivery states after them
(KIP-932, KIP-1226)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient, CoordinatorKind, outcome
from commands.errors import CommandError, explain, raise_if
from commands.groups.offsets import by_topic
from commands.printing import Row, error_of
from commands.records.positions import Lookup
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


DESCRIBE_MS: Final = 10_000
"""Time for the offsets of a group: its coordinator asks the share coordinators, and waits some time for a frozen
one."""


async def share_rows(cluster: ClusterClient, group: str) -> list[Row]:
    """Returns a row for each share partition: its start offset, and its lag if the cluster returns it (KIP-1226)."""
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP,
        group,
        DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)]),
        DescribeShareGroupOffsetsResponse,
        code=lambda answer: answer.groups[0].error_code,
        timeout_ms=min(cluster.timeout_ms, DESCRIBE_MS),
    )
    described = answer.groups[0]
    raise_if(f"group {group}", described.error_code, described.error_message)
    rows: list[Row] = []
    for topic in sorted(described.topics, key=lambda topic: topic.topic_name):
        for partition in sorted(topic.partitions, key=lambda described: described.partition_index):
            code, message = partition.error_code, partition.error_message
            rows.append(
                {
                    "topic": topic.topic_name,
                    "partition": partition.partition_index,
                    "start": partition.start_offset if partition.start_offset >= 0 and not code else None,
                    "lag": partition.lag if partition.lag >= 0 and not code else None,
                    **error_of(explain(code, message) if code else None),
                }
            )
    return rows


async def start_offsets(cluster: ClusterClient, group: str) -> Lookup:
    """Returns the start offset of each share partition that has one, or its error."""
    found = Lookup({}, {})
    for row in await share_rows(cluster, group):
        place = TopicPartition(str(row["topic"]), int(str(row["partition"])))
        if row.get("error"):
            found.errors[place] = str(row["error"])
        elif isinstance(start := row["start"], int):
            found.offsets[place] = start
    return found


async def set_start_offsets(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Sets the start offsets of share partitions; the records after them become available again. Returns the errors of
    partitions that were not set."""
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
        TopicPartition(topic.topic_name, partition.partition_index): explain(
            partition.error_code, partition.error_message
        )
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    }


async def forget_start_offsets(cluster: ClusterClient, group: str, topics: Iterable[str]) -> dict[str, str | None]:
    """Deletes a share group's offsets of topics. Returns an error for each topic, None if they were deleted."""
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
    """Returns a row for each range of records after a start offset for which the share coordinator has a state, and for
    each partition whose state can't be read."""
    starts, errors = await start_offsets(cluster, group)
    rows: list[Row] = []
    for place, batches in (await stored_states(cluster, group, starts)).items():
        if isinstance(batches, CommandError):
            errors[place] = batches.message
        else:
            rows += (_state_row(place, batch) for batch in batches)
    return rows + [
        {"topic": place.topic, "partition": place.partition, "error": error} for place, error in sorted(errors.items())
    ]


async def stored_states(
    cluster: ClusterClient, group: str, places: Collection[TopicPartition]
) -> dict[TopicPartition, list[StateBatch] | CommandError]:
    """Returns the states that the share coordinator has of share partitions, or the error of each."""
    topics = await cluster.topics(sorted({place.topic for place in places}))
    known = [
        (TopicPartition(topic.name or "", partition.partition_index), topic.topic_id, partition.leader_epoch)
        for topic in topics
        for partition in topic.partitions
        if TopicPartition(topic.name or "", partition.partition_index) in places
    ]
    batches = await cluster.together(outcome(_state_batches(cluster, group, *place)) for place in known)
    return {place: of_place for (place, _, _), of_place in zip(known, batches, strict=True)}


def _state_row(place: TopicPartition, batch: StateBatch) -> Row:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "first": batch.first_offset,
        "last": batch.last_offset,
        "state": DELIVERY_STATES.get(batch.delivery_state, str(batch.delivery_state)),
        "deliveries": batch.delivery_count,
    }


async def _state_batches(
    cluster: ClusterClient, group: str, place: TopicPartition, topic_id: Uuid, leader_epoch: int
) -> list[StateBatch]:
    """Reads the state batches from a share partition's coordinator. The leader epoch must be the leader's own: a lower
    epoch is fenced, and a higher epoch would fence the leader."""
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
