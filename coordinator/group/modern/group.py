"""The state that consumer groups and share groups have in common, whether their members own partitions or share them.

Source: Kafka's ModernGroup (KIP-848, KIP-932).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.group import Group
from coordinator.group.timers import Timers
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
    def member_count(self) -> int:
        return len(self.members)

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
        """Returns the member's target assignment, empty where it has none."""
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
        """Adds a member, or replaces it by what it has become."""

    @abstractmethod
    def remove(self, member_id: str) -> None:
        """Removes a member."""

    def put_target(self, member_id: str, assignment: Assignment) -> None:
        """Gives a member another target assignment."""
        self.targets[member_id] = assignment

    def remove_target(self, member_id: str) -> None:
        """Removes a member's target assignment, if it has one."""
        self.targets.pop(member_id, None)
