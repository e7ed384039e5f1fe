"""What the records of consumer groups do to a shard as they are applied.

Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import NO_PARTITIONS, Member
from coordinator.group.consumer.timers import cancel_all
from coordinator.group.modern_group import NO_EPOCH, ensured, existing
from coordinator.group.records import GroupRecord
from coordinator.group.regex import Resolved
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.consumer_group import (
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
)


def epoch(state: GroupState, record: GroupRecord) -> None:
    """The group is at an epoch, or is gone."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupMetadataKey)
    if value is None:
        gone = existing(state, key.group_id, ConsumerGroup)
        if gone is not None:
            gone.cancel_timers(state.timers)
            del state.groups[key.group_id]
        return
    assert isinstance(value, ConsumerGroupMetadataValue)
    group = ensured(state, key.group_id, ConsumerGroup)
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def partition_metadata(state: GroupState, record: GroupRecord) -> None:
    """The group has, or has no longer, a record that its metadata hash has replaced."""
    key = record.key
    assert isinstance(key, ConsumerGroupPartitionMetadataKey)
    group = (
        existing(state, key.group_id, ConsumerGroup)
        if record.value is None
        else ensured(state, key.group_id, ConsumerGroup)
    )
    if group is not None:
        group.has_partition_metadata = record.value is not None


def member(state: GroupState, record: GroupRecord) -> None:
    """A member said something new of itself, or is gone."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupMemberMetadataKey)
    if value is None:
        group = existing(state, key.group_id, ConsumerGroup)
        if group is not None and key.member_id in group.members:
            group.remove(key.member_id)
            cancel_all(state.timers, key.group_id, key.member_id)
        return
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    group = ensured(state, key.group_id, ConsumerGroup)
    group.put(group.members.get(key.member_id, Member(key.member_id)).described_by(value))


def target_epoch(state: GroupState, record: GroupRecord) -> None:
    """There is a new target assignment, whose members' records came before, or none any more."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupTargetAssignmentMetadataKey)
    if value is None:
        gone = existing(state, key.group_id, ConsumerGroup)
        if gone is not None:
            gone.assignment_epoch, gone.assigned_at_ms = NO_EPOCH, 0
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
    group = ensured(state, key.group_id, ConsumerGroup)
    group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def target(state: GroupState, record: GroupRecord) -> None:
    """A member shall come to own other partitions."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupTargetAssignmentMemberKey)
    if value is None:
        group = existing(state, key.group_id, ConsumerGroup)
        if group is not None:
            group.remove_target(key.member_id)
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
    assignment = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    ensured(state, key.group_id, ConsumerGroup).put_target(key.member_id, assignment)


def current(state: GroupState, record: GroupRecord) -> None:
    """A member moved to another epoch, or owns other partitions, or none as it is about to go."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupCurrentMemberAssignmentKey)
    if value is None:
        group = existing(state, key.group_id, ConsumerGroup)
        leaving = group.members.get(key.member_id) if group else None
        if group is not None and leaving is not None:
            group.put(
                leaving._replace(
                    member_epoch=NO_EPOCH,
                    previous_member_epoch=NO_EPOCH,
                    assigned=NO_PARTITIONS,
                    pending_revocation=NO_PARTITIONS,
                )
            )
        return
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
    group = ensured(state, key.group_id, ConsumerGroup)
    group.put(group.members.get(key.member_id, Member(key.member_id)).moved_by(value))


def regex(state: GroupState, record: GroupRecord) -> None:
    """A pattern matched these topics, or is nobody's any more."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupRegularExpressionKey)
    if value is None:
        group = existing(state, key.group_id, ConsumerGroup)
        if group is not None:
            group.put_resolved(key.regular_expression, None)
        return
    assert isinstance(value, ConsumerGroupRegularExpressionValue)
    resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    ensured(state, key.group_id, ConsumerGroup).put_resolved(key.regular_expression, resolved)


APPLY: dict[type, Apply] = {
    ConsumerGroupMetadataKey: epoch,
    ConsumerGroupPartitionMetadataKey: partition_metadata,
    ConsumerGroupMemberMetadataKey: member,
    ConsumerGroupTargetAssignmentMetadataKey: target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: target,
    ConsumerGroupCurrentMemberAssignmentKey: current,
    ConsumerGroupRegularExpressionKey: regex,
}
"""By the class of a record's key."""
