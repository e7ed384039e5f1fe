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


def member_value(described: ShareMember) -> ShareGroupMemberMetadataValue:
    """Returns a member's description."""
    return ShareGroupMemberMetadataValue(
        rack_id=described.rack_id,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topic_names),
    )


def target_value(assignment: Assignment) -> ShareGroupTargetAssignmentMemberValue:
    """Returns a member's target assignment."""
    return ShareGroupTargetAssignmentMemberValue(topic_partitions=_topics(assignment))


def target_from_record(value: ShareGroupTargetAssignmentMemberValue) -> Assignment:
    """Returns the target assignment in a record."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def current_value(moved: ShareMember) -> ShareGroupCurrentMemberAssignmentValue:
    """Returns a member's epoch and partitions."""
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=STABLE,
        assigned_partitions=_topics(moved.assigned),
    )


def _topics(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in assignment.items()
    ]


CLASSES: Final = RecordClasses(
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    member_value,
    target_value,
    current_value,
)

COMMON: Final = ModernRecords(CLASSES)
"""The records that all types of modern groups have."""


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


def _infos(topics: Mapping[Uuid, InitTopic]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions))
        for topic_id, topic in topics.items()
    ]
