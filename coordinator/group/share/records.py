"""The records of share groups: one function for each fact.

Source: GroupCoordinatorRecordHelpers (KIP-932, KIP-1263).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.assignment import Assignment
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


def member(group_id: str, said: ShareMember) -> GroupRecord:
    """What a member says of itself."""
    value = ShareGroupMemberMetadataValue(
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.topic_names),
    )
    return GroupRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=said.member_id), value)


def member_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def epoch(group_id: str, group_epoch: int, metadata_hash: int) -> GroupRecord:
    """The group's epoch, and the hash of the topics that it is for."""
    value = ShareGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return GroupRecord(ShareGroupMetadataKey(group_id=group_id), value)


def epoch_gone(group_id: str) -> GroupRecord:
    """The end of the group itself."""
    return GroupRecord(ShareGroupMetadataKey(group_id=group_id))


def target(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """What a member shall be assigned."""
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return GroupRecord(key, ShareGroupTargetAssignmentMemberValue(topic_partitions=_topics(assignment)))


def target_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def target_epoch(group_id: str, assignment_epoch: int, assigned_at_ms: int) -> GroupRecord:
    """The group epoch that the target assignment is for, and when it was made."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=assigned_at_ms
    )
    return GroupRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_epoch_gone(group_id: str) -> GroupRecord:
    return GroupRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id))


def current(group_id: str, moved: ShareMember) -> GroupRecord:
    """A member's epoch and what it is assigned."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=STABLE,
        assigned_partitions=_topics(moved.assigned),
    )
    return GroupRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=moved.member_id), value)


def current_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def all_of_member_gone(group_id: str, member_id: str) -> list[GroupRecord]:
    """A member's end, in the order that its parts build on each other."""
    return [current_gone(group_id, member_id), target_gone(group_id, member_id), member_gone(group_id, member_id)]


def state_topics(group_id: str, topics: StateTopics) -> GroupRecord:
    """Which share partitions have state, or are about to."""
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
