"""The records of share groups, with a function for each kind.

Source: GroupCoordinatorRecordHelpers (KIP-932, KIP-1263).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.modern.records import ModernRecords, RecordClasses
from coordinator.group.records import GroupRecord
from coordinator.group.share.member import STABLE, ShareMember
from coordinator.group.share.topics import InitTopic, StateTopics
from protocol.coordinator_records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitions,
    TopicPartitionsInfo,
)
from protocol.types import Uuid

CLASSES: Final = RecordClasses(
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
)

COMMON: Final = ModernRecords(CLASSES)
"""The records that both types of modern groups have."""


def member(group_id: str, described: ShareMember) -> GroupRecord:
    """Returns the record of a member's description."""
    value = ShareGroupMemberMetadataValue(
        rack_id=described.rack_id,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topic_names),
    )
    return GroupRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=described.member_id), value)


def target(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """Returns the record of a member's target assignment."""
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return GroupRecord(key, ShareGroupTargetAssignmentMemberValue(topic_partitions=_topics(assignment)))


def current(group_id: str, moved: ShareMember) -> GroupRecord:
    """Returns the record of a member's epoch and assignment."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=STABLE,
        assigned_partitions=_topics(moved.assigned),
    )
    return GroupRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=moved.member_id), value)


def state_topics(group_id: str, topics: StateTopics) -> GroupRecord:
    """Returns the record of the share partitions that have state, or will have it."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(topics.initializing),
        initialized_topics=_infos(topics.initialized),
        deleting_topics=[TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in topics.deleting.items()],
    )
    return GroupRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def state_topics_gone(group_id: str) -> GroupRecord:
    return GroupRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id))


def _topics(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in assignment.items()
    ]


def _infos(topics: Mapping[Uuid, InitTopic]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
        for topic_id, topic in topics.items()
    ]
