"""Replays the records that consumer groups, share groups and streams groups all have.

Every record either sets a part of its group, which it creates if needed, or removes it: a tombstone for a group that
doesn't exist changes nothing. Source: the replay methods of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from coordinator.group.modern.group import NO_EPOCH, ModernGroup
from coordinator.group.modern.records import ModernMember, RecordClasses
from coordinator.group.modern.timers import cancel_all
from coordinator.group.records import GroupRecord
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.consumer_group import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from protocol.coordinator_records.share_group import (
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from protocol.coordinator_records.streams_group import (
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)

G = TypeVar("G", bound="ModernGroup[Any, Any]")
M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")

MetadataValue: TypeAlias = ConsumerGroupMetadataValue | ShareGroupMetadataValue | StreamsGroupMetadataValue
TargetMetadataValue: TypeAlias = (
    ConsumerGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
)


class GroupKey(Protocol):
    """The key of a record about a group."""

    group_id: str


class MemberKey(GroupKey, Protocol):
    """The key of a record about a member."""

    member_id: str


Put = Callable[[G, Any, Any], None]
"""(group, key, value): sets a record's content in its group."""

Remove = Callable[[GroupState, G, Any], None]
"""(state, group, key): removes it."""

Change = Callable[[Any, Any], Any]
"""(member, value): returns the member after a record."""


class MemberChanges(NamedTuple):
    """The functions that apply records to members of one group type."""

    new: Callable[[str], Any]
    """Returns a member that has only its id."""
    described_by: Change
    moved_by: Change
    unassigned: Callable[[Any], Any]
    """Returns the member without epoch, and without partitions or tasks."""
    target: Callable[[Any], Any]
    """Returns the target in the value of a member's target assignment."""


def existing(state: GroupState, group_id: str, kind: type[G]) -> G | None:
    """Returns a record's group; None if there is none of this class."""
    group = state.groups.get(group_id)
    return group if isinstance(group, kind) else None


def ensured(state: GroupState, group_id: str, kind: type[G]) -> G:
    """Returns a record's group, or a new group if there is none of this class. A group of another type under its id can
    only be the remains of a converted group: compaction may have removed the other type's tombstone before the record
    that it deletes."""
    group = existing(state, group_id, kind)
    if group is None:
        group = state.groups[group_id] = kind(group_id)
    return group


def fact(kind: type[G], put: Put[G], remove: Remove[G]) -> Apply:
    """Returns the function that applies the records of one key class."""

    def apply(state: GroupState, record: GroupRecord) -> None:
        key = cast("GroupKey", record.key)  # every key in these tables has a group id
        value = record.value
        if value is not None:
            put(ensured(state, key.group_id, kind), key, value)
        elif (group := existing(state, key.group_id, kind)) is not None:
            remove(state, group, key)

    return apply


def shared_table(kind: type[G], classes: RecordClasses[M, T], changes: MemberChanges) -> dict[type, Apply]:
    """Returns the replay of the records that all types have, by the class of their key."""
    return {
        classes.metadata_key: fact(kind, put_epoch, remove_group),
        classes.member_key: _member_fact(kind, changes.new, changes.described_by, _remove_member),
        classes.target_metadata_key: fact(kind, _put_target_epoch, _remove_target_epoch),
        classes.target_member_key: fact(kind, _put_target(changes.target), _remove_target),
        classes.current_key: _member_fact(kind, changes.new, changes.moved_by, _unassign(changes.unassigned)),
    }


def put_epoch(group: G, key: object, value: MetadataValue) -> None:
    """Sets the group's epoch and the hash of its topics."""
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def remove_group(state: GroupState, group: G, key: object) -> None:
    """Removes the group; the tombstones of its members came before."""
    group.cancel_timers(state.timers)
    del state.groups[group.group_id]


def _put_target_epoch(group: G, key: object, value: TargetMetadataValue) -> None:
    """Sets the epoch of the target assignment; the records of the members' targets came before."""
    group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def _remove_target_epoch(state: GroupState, group: G, key: object) -> None:
    group.assignment_epoch, group.assigned_at_ms = NO_EPOCH, 0


def _put_target(target: Callable[[Any], Any]) -> Put[G]:
    def put(group: G, key: MemberKey, value: object) -> None:
        group.put_target(key.member_id, target(value))

    return put


def _remove_target(state: GroupState, group: G, key: MemberKey) -> None:
    group.remove_target(key.member_id)


def _member_fact(kind: type[G], new: Callable[[str], Any], change: Change, remove: Remove[G]) -> Apply:
    """Returns the function that applies a record that creates or changes a member."""

    def put(group: G, key: MemberKey, value: object) -> None:
        group.put(change(group.members.get(key.member_id) or new(key.member_id), value))

    return fact(kind, put, remove)


def _remove_member(state: GroupState, group: G, key: MemberKey) -> None:
    if key.member_id in group.members:
        group.remove(key.member_id)
        cancel_all(state.timers, key.group_id, key.member_id)


def _unassign(unassigned: Callable[[Any], Any]) -> Remove[G]:
    def remove(state: GroupState, group: G, key: MemberKey) -> None:
        member = group.members.get(key.member_id)
        if member is not None:
            group.put(unassigned(member))

    return remove
