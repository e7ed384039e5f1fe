"""Changes topics; each change returns a row with its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commands.client.cluster_client import ClusterClient, leaders, outcome
from commands.errors import CommandError, explain
from commands.printing import Row
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from protocol.types import NO_UUID


async def create_topics(
    cluster: ClusterClient,
    names: Sequence[str],
    *,
    partitions: int,
    replicas: int,
    assigned: Mapping[int, list[int]],
    configs: Mapping[str, str],
    dry_run: bool,
    if_not_exists: bool,
) -> list[Row]:
    """Creates topics with the same settings. With -1 partitions or replicas the brokers choose the number."""
    placed = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assigned.items()]
    settings = [CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    topics = [
        CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, assignments=placed, configs=settings
        )
        for name in names
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=cluster.timeout_ms, validate_only=dry_run)
    answer = await cluster.controller(request, CreateTopicsResponse)
    if not dry_run:
        await led(cluster, [topic.name for topic in answer.topics if not topic.error_code])
    rows: list[Row] = []
    for topic in answer.topics:
        row: dict[str, object] = {"topic": topic.name}
        if topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
            rows.append({**row, "result": "exists already"})
        elif topic.error_code:
            rows.append({**row, "error": explain(topic.error_code, topic.error_message)})
        else:
            row |= {"partitions": topic.num_partitions, "replicas": topic.replication_factor}
            result = "would be created" if dry_run else "created"
            if 0 <= topic.replication_factor < replicas:
                result += f", with fewer than {replicas} replicas: the cluster has too few brokers"
            rows.append({**row, "result": result})
    return rows


async def led(cluster: ClusterClient, names: Sequence[str]) -> None:
    """Waits until the broker knows the leaders of the topics' partitions: brokers learn of a new topic a moment after
    the controller has answered."""

    async def ask() -> tuple[int, MetadataResponse]:
        answer = await cluster.metadata(names)
        codes = (code for topic in answer.topics for code in (topic.error_code, *_partition_errors(topic)))
        return next((code for code in codes if code), 0), answer

    if names:
        await cluster.until_settled(ask)


def _partition_errors(topic: MetadataResponseTopic) -> list[int]:
    return [partition.error_code for partition in topic.partitions]


async def grow_topic(cluster: ClusterClient, name: str, count: int, *, dry_run: bool) -> Row:
    """Increases the number of a topic's partitions to `count`."""
    entry = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[entry], timeout_ms=cluster.timeout_ms, validate_only=dry_run)
    answer = await cluster.controller(request, CreatePartitionsResponse)
    for result in answer.results:
        if result.error_code:
            return {"topic": name, "error": explain(result.error_code, result.error_message)}
    return {"topic": name, "partitions": count, "result": "would grow" if dry_run else "grown"}


async def delete_topics(cluster: ClusterClient, names: Sequence[str]) -> list[Row]:
    """Deletes topics by name."""
    states = [DeleteTopicState(name=name, topic_id=NO_UUID) for name in names]
    request = DeleteTopicsRequest(topics=states, topic_names=list(names), timeout_ms=cluster.timeout_ms)
    answer = await cluster.controller(request, DeleteTopicsResponse)
    return [
        {"topic": topic.name, "error": explain(topic.error_code, topic.error_message)}
        if topic.error_code
        else {"topic": topic.name, "result": "deleted"}
        for topic in answer.responses
    ]


async def delete_records(cluster: ClusterClient, topic: MetadataResponseTopic, offsets: Mapping[int, int]) -> list[Row]:
    """Deletes the records before the given offsets of a topic's partitions."""
    name = topic.name or ""

    async def at(leader: int, indexes: Sequence[int]) -> list[Row]:
        entries = [DeleteRecordsPartition(partition_index=index, offset=offsets[index]) for index in indexes]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=entries)], timeout_ms=cluster.timeout_ms
        )
        answer = await outcome(cluster.node(leader, request, DeleteRecordsResponse))
        if isinstance(answer, CommandError):
            return [{"topic": name, "partition": index, "error": answer.message} for index in indexes]
        return [
            {"topic": name, "partition": partition.partition_index, "error": explain(partition.error_code)}
            if partition.error_code
            else {
                "topic": name,
                "partition": partition.partition_index,
                "start": partition.low_watermark,
                "result": "trimmed",
            }
            for entry in answer.topics
            for partition in entry.partitions
        ]

    by_leader = {
        leader: [partition.partition_index for partition in partitions if partition.partition_index in offsets]
        for leader, partitions in leaders(topic, skip_leaderless=True).items()
    }
    answers = await cluster.together(at(leader, indexes) for leader, indexes in by_leader.items() if indexes)
    return [row for rows in answers for row in rows]
