"""The committed offsets of groups: reads, commits and deletes them. Requests name topics, which every broker
understands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from commands.client.cluster_client import ClusterClient, CoordinatorKind
from commands.errors import explain, raise_if
from commands.groups.membership import GroupIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from protocol.types import TopicPartition

NAMES_VERSION: Final = 9
"""The last version of OffsetFetch and OffsetCommit with topic names."""

NOBODY: Final = GroupIdentity()


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Returns partitions by topic."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return topics


async def committed_offsets(
    cluster: ClusterClient, group: str, places: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Returns a group's committed offsets: all of them, or the offsets of `places`, with -1 for a partition without a
    committed offset."""
    request = OffsetFetchRequest(group_id=group, groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP, group, request, OffsetFetchResponse, code=_error_of, max_version=NAMES_VERSION
    )
    raise_if(f"group {group}", _error_of(answer))
    topics = answer.groups[0].topics if answer.groups else answer.topics
    offsets: dict[TopicPartition, int] = {}
    for topic in topics:
        for partition in topic.partitions:
            raise_if(f"group {group}, {topic.name}-{partition.partition_index}", partition.error_code)
            if partition.committed_offset >= 0:
                offsets[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
    return offsets if places is None else {place: offsets.get(place, -1) for place in places}


def _error_of(answer: OffsetFetchResponse) -> int:
    return answer.groups[0].error_code if answer.groups else answer.error_code


async def commit_offsets(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, int], identity: GroupIdentity = NOBODY
) -> dict[TopicPartition, str]:
    """Commits offsets. Returns the errors of the partitions that were not committed."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offsets[TopicPartition(topic, index)], committed_metadata=""
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=identity.generation, member_id=identity.member_id, topics=topics
    )
    answer = await cluster.coordinated(
        CoordinatorKind.GROUP, group, request, OffsetCommitResponse, code=_first_error, max_version=NAMES_VERSION
    )
    return {
        TopicPartition(topic.name, partition.partition_index): explain(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code
    }


def _first_error(answer: OffsetCommitResponse | OffsetDeleteResponse) -> int:
    codes = (partition.error_code for topic in answer.topics for partition in topic.partitions)
    return next((code for code in codes if code), 0)


async def delete_offsets(
    cluster: ClusterClient, group: str, places: Iterable[TopicPartition]
) -> dict[TopicPartition, str | None]:
    """Deletes committed offsets. Returns an error for each partition, None if it was deleted."""
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for topic, indexes in by_topic(places).items()
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    answer = await cluster.coordinated(CoordinatorKind.GROUP, group, request, OffsetDeleteResponse)
    raise_if(f"group {group}", answer.error_code)
    return {
        TopicPartition(topic.name, partition.partition_index): explain(partition.error_code)
        if partition.error_code
        else None
        for topic in answer.topics
        for partition in topic.partitions
    }
