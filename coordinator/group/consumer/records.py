"""The records of consumer groups in `__consumer_offsets`: a function for each kind, and for its tombstone.

Source: GroupCoordinatorRecordHelpers of Apache Kafka 4.3 (KIP-848, KIP-1101, KIP-1251, KIP-1263).
"""

from __future__ import annotations

from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.consumer.member import Member, Owned
from coordinator.group.modern.records import ModernRecords, RecordClasses
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


def member_value(described: Member) -> ConsumerGroupMemberMetadataValue:
    """Returns a member's description."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=described.instance_id,
        rack_id=described.rack_id,
        client_id=described.client_id,
        client_host=described.client_host,
        subscribed_topic_names=sorted(described.topic_names),
        subscribed_topic_regex=described.topic_regex,
        rebalance_timeout_ms=described.rebalance_timeout_ms,
        server_assignor=described.server_assignor,
        classic_member_metadata=described.classic,
    )


def target_value(assignment: Assignment) -> ConsumerGroupTargetAssignmentMemberValue:
    """Returns a member's target assignment."""
    topics = [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions)) for topic_id, partitions in assignment.items()
    ]
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)


def target_from_record(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    """Returns the target assignment in a record."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def current_value(moved: Member) -> ConsumerGroupCurrentMemberAssignmentValue:
    """Returns a member's epoch and partitions."""
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=moved.member_epoch,
        previous_member_epoch=moved.previous_member_epoch,
        state=moved.state,
        assigned_partitions=_with_epochs(moved.assigned),
        partitions_pending_revocation=_with_epochs(moved.pending_revocation),
    )


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


CLASSES: Final = RecordClasses(
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    member_value,
    target_value,
    current_value,
)

COMMON: Final = ModernRecords(CLASSES)
"""The records that all types of modern groups have."""


def regex(group_id: str, pattern: str, resolved: Resolved) -> GroupRecord:
    """Returns the record of the topics that a pattern matched."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regex_gone(group_id: str, pattern: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern))


def partition_metadata_gone(group_id: str) -> GroupRecord:
    """Returns the tombstone of Kafka 4.0's topic metadata; the epoch's record has a hash instead."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id))
