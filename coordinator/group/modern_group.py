"""What groups that the broker assigns have in common, whether their members own partitions or share them.

Source: Kafka's ModernGroup (KIP-848, KIP-932).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.group import Group
from coordinator.group.state import GroupState
from protocol.errors import ErrorCode, KafkaError

FIRST_EPOCH: Final = 1
"""Of a group and of its target assignment before anyone has joined."""

NO_EPOCH: Final = -1


class Checked(NamedTuple):
    """When a group last looked at its topics: after how many changes of them, and with which group epoch as the
    result. A lower epoch now means that the result was never written."""

    changes: int = -1
    group_epoch: int = 0


class ModernMember(Protocol):
    """A member, as far as any such group looks at it."""

    @property
    def member_id(self) -> str: ...


M = TypeVar("M", bound=ModernMember)
G = TypeVar("G", bound="ModernGroup[Any]")


class ModernGroup(Group, Generic[M]):
    """Its epochs, members and target assignment; only the replay of its records changes them."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """When the target assignment was made; 0 if it never was."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, Assignment] = {}
        self.checked = Checked()
        """Of the moment: no record has it."""

    @property
    def is_empty(self) -> bool:
        return not self.members

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def tickets(self) -> Iterable[Hashable]:
        return ()

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def member(self, member_id: str) -> M:
        """The member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)


def existing(state: GroupState, group_id: str, kind: type[G]) -> G | None:
    """The group that a record speaks of, if there is one of this class."""
    group = state.groups.get(group_id)
    return group if isinstance(group, kind) else None


def ensured(state: GroupState, group_id: str, kind: type[G]) -> G:
    """The group that a record speaks of. A group of another type under its id can only be what is left of one that
    became this: compaction may have taken its tombstone before the record that it was for."""
    group = existing(state, group_id, kind)
    if group is None:
        group = state.groups[group_id] = kind(group_id)
    return group
