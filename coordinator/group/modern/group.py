"""The common state of consumer groups and share groups.

Source: Kafka's ModernGroup (KIP-848, KIP-932).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.group import Group
from coordinator.group.state import GroupState
from coordinator.group.timers import Timers
from protocol.errors import ErrorCode, KafkaError

FIRST_EPOCH: Final = 1
"""The epoch of a group and of its target assignment before any member has joined."""

NO_EPOCH: Final = -1


class Checked(NamedTuple):
    """The last check of a group's topics: the number of topic changes before it, and the resulting group epoch. If the
    group's epoch is lower now, the result was never written."""

    changes: int = -1
    group_epoch: int = 0


class ModernMember(Protocol):
    """A member, as far as both group types use it."""

    @property
    def member_id(self) -> str: ...


M = TypeVar("M", bound=ModernMember)


class ModernGroup(Group, Generic[M]):
    """The epochs, members and target assignment of a group; only the replay of its records changes them."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """The time when the target assignment was made; 0 if it never was."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, Assignment] = {}
        self.checked = Checked()
        """The last check of the group's topics, which is only in memory."""

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_empty(self) -> bool:
        return not self.members

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def member(self, member_id: str) -> M:
        """Returns the member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def target(self, member_id: str) -> Assignment:
        """Returns the member's target assignment; empty if it has none."""
        return self.targets.get(member_id, NOTHING)

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            self.cancel_member_timers(timers, member_id)

    @abstractmethod
    def cancel_member_timers(self, timers: Timers, member_id: str) -> None:
        """Cancels every deadline of a member that has gone."""

    # Changes, which only the replay of records makes.

    @abstractmethod
    def put(self, member: M) -> None:
        """Adds or replaces a member."""

    @abstractmethod
    def remove(self, member_id: str) -> None:
        """Removes a member."""

    def put_target(self, member_id: str, assignment: Assignment) -> None:
        """Sets a member's target assignment."""
        self.targets[member_id] = assignment

    def remove_target(self, member_id: str) -> None:
        """Removes a member's target assignment, if it has one."""
        self.targets.pop(member_id, None)


def note_check(state: GroupState, group_id: str, checked: Checked) -> None:
    """Remembers a check of a group's topics; an effect, because the group may be new."""
    group = state.groups.get(group_id)
    if isinstance(group, ModernGroup):
        group.checked = checked
