"""Members that keep their partitions or tasks over a restart, because they have instance ids (KIP-345).

Source: GroupMetadataManager's getOrMaybe…Member and throwIf… methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from coordinator.group.modern.group import LEAVING_FOR_A_WHILE, ModernGroup
from coordinator.group.modern.records import ModernMember
from coordinator.group.records import GroupResult
from protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")
S = TypeVar("S", bound="StaticMember")


class StaticMember(ModernMember, Protocol):
    """A member that may have an instance id."""

    @property
    def instance_id(self) -> str | None: ...

    def succeeded_by(self: S, member_id: str) -> S:
        """Returns the member that takes over its instance id, and its partitions or tasks."""
        ...


class StaticGroup(ModernGroup[S, T], Generic[S, T]):
    """A group whose members may have instance ids."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""

    def static_member(self, instance_id: str | None) -> S | None:
        """Returns the member that has an instance id."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def present(self, member_id: str, instance_id: str | None) -> S:
        """Returns a member by its id, and by its instance id if it has one. Raises UNKNOWN_MEMBER_ID and
        FENCED_INSTANCE_ID."""
        if instance_id is None:
            return self.member(member_id)
        return check_instance(self.static_member(instance_id), member_id, instance_id)

    def check_room_for(self, member_id: str, instance_id: str | None, max_size: int) -> None:
        """Raises GROUP_MAX_SIZE_REACHED if a new member would exceed the limit; a member that takes over an instance id
        does not."""
        if self.static_member(instance_id) is None:
            self.check_room(member_id, max_size)

    def target_of(self, member: S) -> T:
        """Returns a member's target; for a static member, the target of the present owner of its instance id."""
        if member.instance_id is None:
            return self.target(member.member_id)
        return self.target(self.static_members.get(member.instance_id, ""))

    def members_with(self, changed: S) -> tuple[dict[str, S], str | None]:
        """Returns the members after `changed` joined or changed, and the id of the static member that it replaces."""
        members = dict(self.members)
        replaced = self.static_members.get(changed.instance_id) if changed.instance_id is not None else None
        if replaced == changed.member_id:
            replaced = None
        if replaced is not None:
            del members[replaced]
        members[changed.member_id] = changed
        return members, replaced

    def put_instance(self, before: S | None, after: S) -> None:
        """Updates the owner of an instance id after a member has changed; it may have changed its instance id."""
        if before is not None:
            self.remove_instance(before)
        if after.instance_id is not None:
            self.static_members[after.instance_id] = after.member_id

    def remove_instance(self, member: S) -> None:
        """Removes the member as the owner of its instance id, unless another member has it by now."""
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]


def dynamic_member(group: ModernGroup[S, T], member_id: str, new: Callable[[str], S], *, joining: bool) -> S:
    """Returns the member, or a new member if it joins; raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    return new(member_id) if member is None and joining else group.member(member_id)


def static_member(
    group: StaticGroup[S, T],
    member_id: str,
    instance_id: str,
    result: GroupResult,
    new: Callable[[str], S],
    may_replace: Callable[[S], bool],
    *,
    joining: bool,
) -> S:
    """Returns the member with the instance id. A joining member replaces the present owner of the id, if it may. Raises
    UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID."""
    if not joining:
        return group.present(member_id, instance_id)
    present = group.static_member(instance_id)
    if present is None:
        return dynamic_member(group, member_id, new, joining=True)
    if not may_replace(present):
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {present.member_id} member.",
        )
    successor = present.succeeded_by(member_id)
    records, group_id = group.records, group.group_id
    result.records += [
        *records.all_of_member_gone(group_id, present.member_id),
        records.member(group_id, successor),
        records.target(group_id, member_id, group.target(present.member_id)),
        records.current(group_id, successor),
    ]
    return successor


def has_left_for_a_while(member: StaticMember) -> bool:
    """True if the member has left, and will be back."""
    return member.member_epoch == LEAVING_FOR_A_WHILE


def check_instance(present: S | None, member_id: str, instance_id: str) -> S:
    """Returns the static member, if it still has this member id."""
    if present is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if present.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {present.member_id}.",
        )
    return present
