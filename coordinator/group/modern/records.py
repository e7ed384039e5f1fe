"""The records of both consumer groups and share groups, made from each type's own classes.

Source: GroupCoordinatorRecordHelpers of Apache Kafka 4.3 (KIP-848, KIP-932, KIP-1101, KIP-1263).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from coordinator.group.assignment import Assignment
from coordinator.group.records import GroupRecord
from protocol.coordinator_records import consumer_group, share_group
from protocol.schema import Message


class ModernMember(Protocol):
    """The fields of a member that both group types have."""

    @property
    def member_id(self) -> str: ...

    @property
    def member_epoch(self) -> int: ...

    @property
    def previous_member_epoch(self) -> int: ...


M = TypeVar("M", bound=ModernMember)


class RecordClasses(NamedTuple, Generic[M]):
    """The keys and values of one group type, whose members are of class M."""

    metadata_key: type[consumer_group.ConsumerGroupMetadataKey] | type[share_group.ShareGroupMetadataKey]
    metadata_value: type[consumer_group.ConsumerGroupMetadataValue] | type[share_group.ShareGroupMetadataValue]
    member_key: type[consumer_group.ConsumerGroupMemberMetadataKey] | type[share_group.ShareGroupMemberMetadataKey]
    target_metadata_key: (
        type[consumer_group.ConsumerGroupTargetAssignmentMetadataKey]
        | type[share_group.ShareGroupTargetAssignmentMetadataKey]
    )
    target_metadata_value: (
        type[consumer_group.ConsumerGroupTargetAssignmentMetadataValue]
        | type[share_group.ShareGroupTargetAssignmentMetadataValue]
    )
    target_member_key: (
        type[consumer_group.ConsumerGroupTargetAssignmentMemberKey]
        | type[share_group.ShareGroupTargetAssignmentMemberKey]
    )
    current_key: (
        type[consumer_group.ConsumerGroupCurrentMemberAssignmentKey]
        | type[share_group.ShareGroupCurrentMemberAssignmentKey]
    )
    member_value: Callable[[M], Message]
    """Returns a member's description."""
    target_value: Callable[[Assignment], Message]
    current_value: Callable[[M], Message]
    """Returns a member's epoch and partitions."""


class ModernRecords(Generic[M]):
    """A function for each kind of record that both types have, and for its tombstone."""

    __slots__ = ("classes",)

    def __init__(self, classes: RecordClasses[M]) -> None:
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

    def target(self, group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
        """Returns the record of a member's target assignment."""
        key = self.classes.target_member_key(group_id=group_id, member_id=member_id)
        return GroupRecord(key, self.classes.target_value(assignment))

    def target_gone(self, group_id: str, member_id: str) -> GroupRecord:
        """Returns the tombstone of a member's target assignment."""
        return GroupRecord(self.classes.target_member_key(group_id=group_id, member_id=member_id))

    def current(self, group_id: str, moved: M) -> GroupRecord:
        """Returns the record of a member's epoch and partitions."""
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


def changed_targets(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> dict[str, Assignment]:
    """Returns the new target assignments that differ from the old, by member id."""
    return {member_id: target for member_id, target in after.items() if before.get(member_id) != target}
