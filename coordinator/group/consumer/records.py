"""The records of consumer groups in `__consumer_offsets`: one function for each fact, and for its end.

Source: GroupCoordinatorRecordHelpers of Apache Kafka 4.3 (KIP-848, KIP-1101, KIP-1251, KIP-1263).
"""

from __future__ import annotations

from coordinator.group.assignment import Assignment
from coordinator.group.consumer.member import Member, Owned
from coordinator.group.records import GroupRecord
from coordinator.group.regex import Resolved
from protocol.coordinator_records.consumer_group import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)


def member(group_id: str, said: Member) -> GroupRecord:
    """What a member says of itself."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.topic_names),
        subscribed_topic_regex=said.topic_regex,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        server_assignor=said.server_assignor,
        classic_member_metadata=said.classic,
    )
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=said.member_id), value)


def member_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def epoch(group_id: str, group_epoch: int, metadata_hash: int) -> GroupRecord:
    """The group's epoch, and the hash of the topics that it is for."""
    value = ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return GroupRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def epoch_gone(group_id: str) -> GroupRecord:
    """The end of the group itself."""
    return GroupRecord(ConsumerGroupMetadataKey(group_id=group_id))


def target(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """What a member shall come to own."""
    topics = [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in assignment.items()
    ]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return GroupRecord(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def target_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def target_epoch(group_id: str, assignment_epoch: int, assigned_at_ms: int) -> GroupRecord:
    """The group epoch that the target assignment is for, and when it was made."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=assigned_at_ms
    )
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_epoch_gone(group_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def current(group_id: str, moved: Member) -> GroupRecord:
    """A member's epoch and what it owns."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=moved.state,
        assigned_partitions=_with_epochs(moved.assigned),
        partitions_pending_revocation=_with_epochs(moved.pending_revocation),
    )
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=moved.member_id), value)


def _with_epochs(owned: Owned) -> list[AssignedTopicPartitions]:
    topics = []
    for topic_id, epochs in owned.items():
        partitions = sorted(epochs)
        topics.append(
            AssignedTopicPartitions(
                topic_id=topic_id, partitions=partitions, assignment_epochs=[epochs[index] for index in partitions]
            )
        )
    return topics


def current_gone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def all_of_member_gone(group_id: str, member_id: str) -> list[GroupRecord]:
    """A member's end, in the order that its parts build on each other."""
    return [current_gone(group_id, member_id), target_gone(group_id, member_id), member_gone(group_id, member_id)]


def regex(group_id: str, pattern: str, resolved: Resolved) -> GroupRecord:
    """The topics that a pattern matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regex_gone(group_id: str, pattern: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern))


def partition_metadata_gone(group_id: str) -> GroupRecord:
    """The end of what Kafka 4.0 kept of topics, where the epoch's record has a hash now."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id))
