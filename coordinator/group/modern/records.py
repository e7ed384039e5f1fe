"""The records that consumer groups, share groups and streams groups all have, made from each type's own classes.

Source: GroupCoordinatorRecordHelpers of Apache Kafka 4.3 (KIP-848, KIP-932, KIP-1071, KIP-1101, KIP-1263).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from coordinator.group.records import GroupRecord
from protocol.coordinator_records import consumer_group, share_group, streams_group
from protocol.schema import Message


class ModernMember(Protocol):
    """The fields of a member that all group types have."""

    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...

    @property
    def previous_member_epoch(self) -> int: ...


M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")
"""A member's target: partitions, or tasks."""


class RecordClasses(NamedTuple, Generic[M, T]):
    """The keys and values of one group type, whose members are of class M and have targets of class T."""

    metadata_key: (
        type[consumer_group.ConsumerGroupMetadataKey]
        | type[share_group.ShareGroupMetadataKey]
        | type[streams_group.StreamsGroupMetadataKey]
    )
    metadata_value: (
        type[consumer_group.ConsumerGroupMetadataValue]
        | type[share_group.ShareGroupMetadataValue]
        | type[streams_group.StreamsGroupMetadataValue]
    )
    member_key: (
        type[consumer_group.ConsumerGroupMemberMetadataKey]
        | type[share_group.ShareGroupMemberMetadataKey]
        | type[streams_group.StreamsGroupMemberMetadataKey]
    )
    target_metadata_key: (
        type[consumer_group.ConsumerGroupTargetAssignmentMetadataKey]
        | type[share_group.ShareGroupTargetAssignmentMetadataKey]
        | type[streams_group.StreamsGroupTargetAssignmentMetadataKey]
    )
    target_metadata_value: (
        type[consumer_group.ConsumerGroupTargetAssignmentMetadataValue]
        | type[share_group.ShareGroupTargetAssignmentMetadataValue]
        | type[streams_group.StreamsGroupTargetAssignmentMetadataValue]
    )
    target_member_key: (
        type[consumer_group.ConsumerGroupTargetAssignmentMemberKey]
        | type[share_group.ShareGroupTargetAssignmentMemberKey]
        | type[streams_group.StreamsGroupTargetAssignmentMemberKey]
    )
    current_key: (
        type[consumer_group.ConsumerGroupCurrentMemberAssignmentKey]
        | type[share_group.ShareGroupCurrentMemberAssignmentKey]
        | type[streams_group.StreamsGroupCurrentMemberAssignmentKey]
    )
    member_value: Callable[[M], Message]
    """Returns a member's description."""
    target_value: Callable[[T], Message]
    current_value: Callable[[M], Message]
    """Returns a member's epoch, and its partitions or tasks."""


class ModernRecords(Generic[M, T]):
    """A function for each kind of record that all types have, and for its tombstone."""

    __slots__ = ("classes",)

    def __init__(self, classes: RecordClasses[M, T]) -> None:
        self.classes = classes

    def epoch(self, group_id: str, group_epoch: int, metadata_hash: int) -> GroupRecord:
        """Returns the record of the group's epoch, with the hash of its topics."""
        value = self.classes.metadata_value(epoch=group_epoch, metadata_hash=metadata_hash)
        return GroupRecord(self.classes.metadata_key(group_id=group_id), value)

    def epoch_gone(self, group_id: str) -> GroupRecord:
        """Returns the tombstone of the group itself."""
        return GroupRecord(self.classes.metadata_key(group_id=group_id))

    def member(self, group_id: str, described: M) -> GroupRecord:
        """Returns the record of a member's description."""
        key = self.classes.member_key(group_id=group_id, member_id=described.member_id)
        return GroupRecord(key, self.classes.member_value(described))

    def member_gone(self, group_id: str, member_id: str) -> GroupRecord:
        """Returns the tombstone of a member's description."""
        return GroupRecord(self.classes.member_key(group_id=group_id, member_id=member_id))

    def target_epoch(self, group_id: str, assignment_epoch: int, assigned_at_ms: int) -> GroupRecord:
        """Returns the record of the target assignment's epoch, with the time at which it was computed."""
        value = self.classes.target_metadata_value(
            assignment_epoch=assignment_epoch, assignment_timestamp=assigned_at_ms
        )
        return GroupRecord(self.classes.target_metadata_key(group_id=group_id), value)

    def target_epoch_gone(self, group_id: str) -> GroupRecord:
        """Returns the tombstone of the target assignment's epoch."""
        return GroupRecord(self.classes.target_metadata_key(group_id=group_id))

    def target(self, group_id: str, member_id: str, assignment: T) -> GroupRecord:
        """Returns the record of a member's target assignment."""
        key = self.classes.target_member_key(group_id=group_id, member_id=member_id)
        return GroupRecord(key, self.classes.target_value(assignment))

    def target_gone(self, group_id: str, member_id: str) -> GroupRecord:
        """Returns the tombstone of a member's target assignment."""
        return GroupRecord(self.classes.target_member_key(group_id=group_id, member_id=member_id))

    def current(self, group_id: str, moved: M) -> GroupRecord:
        """Returns the record of a member's epoch, and its partitions or tasks."""
        key = self.classes.current_key(group_id=group_id, member_id=moved.member_id)
        return GroupRecord(key, self.classes.current_value(moved))

    def current_gone(self, group_id: str, member_id: str) -> GroupRecord:
        """Returns the tombstone of a member's current assignment."""
        return GroupRecord(self.classes.current_key(group_id=group_id, member_id=member_id))

    def all_of_member_gone(self, group_id: str, member_id: str) -> list[GroupRecord]:
        """Returns a member's tombstones, in the order in which they depend on each other."""
        return [
            self.current_gone(group_id, member_id),
            self.target_gone(group_id, member_id),
            self.member_gone(group_id, member_id),
        ]


def changed_targets(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T]:
    """Returns the new target assignments that differ from the old, by member id."""
    return {member_id: target for member_id, target in after.items() if before.get(member_id) != target}
