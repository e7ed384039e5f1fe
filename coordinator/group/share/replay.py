"""What the records of share groups do to a shard as they are applied.

Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from coordinator.group.assignment import NOTHING
from coordinator.group.modern_group import NO_EPOCH, ensured, existing
from coordinator.group.records import GroupRecord
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.member import ShareMember
from coordinator.group.share.topics import NO_STATE, from_record
from coordinator.group.state import Apply, GroupState
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
)


def epoch(state: GroupState, record: GroupRecord) -> None:
    """The group is at an epoch, or is gone."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupMetadataKey)
    if value is None:
        gone = existing(state, key.group_id, ShareGroup)
        if gone is not None:
            gone.cancel_timers(state.timers)
            del state.groups[key.group_id]
        return
    assert isinstance(value, ShareGroupMetadataValue)
    group = ensured(state, key.group_id, ShareGroup)
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def member(state: GroupState, record: GroupRecord) -> None:
    """A member said something new of itself, or is gone."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupMemberMetadataKey)
    if value is None:
        group = existing(state, key.group_id, ShareGroup)
        if group is not None and key.member_id in group.members:
            group.remove(key.member_id)
        return
    assert isinstance(value, ShareGroupMemberMetadataValue)
    group = ensured(state, key.group_id, ShareGroup)
    group.put(group.members.get(key.member_id, ShareMember(key.member_id)).described_by(value))


def target_epoch(state: GroupState, record: GroupRecord) -> None:
    """There is a new target assignment, whose members' records came before, or none any more."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupTargetAssignmentMetadataKey)
    if value is None:
        gone = existing(state, key.group_id, ShareGroup)
        if gone is not None:
            gone.assignment_epoch, gone.assigned_at_ms = NO_EPOCH, 0
        return
    assert isinstance(value, ShareGroupTargetAssignmentMetadataValue)
    group = ensured(state, key.group_id, ShareGroup)
    group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def target(state: GroupState, record: GroupRecord) -> None:
    """A member shall be assigned other partitions."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupTargetAssignmentMemberKey)
    if value is None:
        group = existing(state, key.group_id, ShareGroup)
        if group is not None:
            group.targets.pop(key.member_id, None)
        return
    assert isinstance(value, ShareGroupTargetAssignmentMemberValue)
    ensured(state, key.group_id, ShareGroup).targets[key.member_id] = {
        topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
    }


def current(state: GroupState, record: GroupRecord) -> None:
    """A member moved to another epoch, or is assigned other partitions, or none as it is about to go."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupCurrentMemberAssignmentKey)
    if value is None:
        group = existing(state, key.group_id, ShareGroup)
        leaving = group.members.get(key.member_id) if group else None
        if group is not None and leaving is not None:
            group.put(leaving._replace(member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned=NOTHING))
        return
    assert isinstance(value, ShareGroupCurrentMemberAssignmentValue)
    group = ensured(state, key.group_id, ShareGroup)
    group.put(group.members.get(key.member_id, ShareMember(key.member_id)).moved_by(value))


def state_topics(state: GroupState, record: GroupRecord) -> None:
    """Other share partitions have state, or none any more."""
    key, value = record.key, record.value
    assert isinstance(key, ShareGroupStatePartitionMetadataKey)
    if value is None:
        group = existing(state, key.group_id, ShareGroup)
        if group is not None:
            group.topics = NO_STATE
        return
    assert isinstance(value, ShareGroupStatePartitionMetadataValue)
    ensured(state, key.group_id, ShareGroup).topics = from_record(value)


APPLY: dict[type, Apply] = {
    ShareGroupMetadataKey: epoch,
    ShareGroupMemberMetadataKey: member,
    ShareGroupTargetAssignmentMetadataKey: target_epoch,
    ShareGroupTargetAssignmentMemberKey: target,
    ShareGroupCurrentMemberAssignmentKey: current,
    ShareGroupStatePartitionMetadataKey: state_topics,
}
"""By the class of a record's key."""
