"""The common state of consumer groups, share groups and streams groups.

Source: Kafka's ModernGroup and StreamsGroup (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from coordinator.group.group import Group
from coordinator.group.modern.records import ModernMember, ModernRecords
from coordinator.group.modern.timers import cancel_all
from coordinator.group.records import GroupRecord
from coordinator.group.state import GroupState
from coordinator.group.timers import Timers
from protocol.errors import ErrorCode, KafkaError

FIRST_EPOCH: Final = 1
"""The epoch of a group and of its target assignment before any member has joined."""

NO_EPOCH: Final = -1

JOINING: Final = 0
"""The epoch in the heartbeat of a member that joins."""

LEAVING: Final = -1
"""The epoch in the heartbeat of a member that leaves."""

LEAVING_FOR_A_WHILE: Final = -2
"""The epoch of a static member that will be back: it keeps its partitions or tasks until its session ends."""


class Checked(NamedTuple):
    """The last check of a group's topics: the number of topic changes before it, and the resulting group epoch. If the
    group's epoch is lower now, the result was never written."""

    changes: int = -1
    group_epoch: int = 0


M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


class ModernGroup(Group, Generic[M, T]):
    """The epochs, members and target assignment of a group; only the replay of its records changes them."""

    records: ModernRecords[M, T]

    no_target: T
    """The target of a member that has none."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """The time when the target assignment was made; 0 if it never was."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, T] = {}
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

    def check_room(self, member_id: str, max_size: int) -> None:
        """Raises GROUP_MAX_SIZE_REACHED if a new member would exceed the limit."""
        if len(self.members) >= max_size and member_id not in self.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {self.type.value} group has reached its maximum capacity of {max_size} members.",
            )

    def check_epoch(self, member: M, epoch: int, *, may_be_previous: bool = True, mismatch: str = "") -> None:
        """Raises FENCED_MEMBER_EPOCH unless the member joins or sends its current epoch. With `may_be_previous`, a
        member that missed an answer may also send its previous epoch."""
        if epoch in (JOINING, member.member_epoch):
            return
        if epoch > member.member_epoch:
            raise self._fenced("greater", epoch, member, "")
        if epoch != member.previous_member_epoch or not may_be_previous:
            raise self._fenced("smaller", epoch, member, mismatch)

    def _fenced(self, how: str, epoch: int, member: M, mismatch: str) -> KafkaError:
        return KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self.type.value} group member has a {how} member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.member_epoch}){mismatch}. The member must abandon all its partitions and rejoin.",
        )

    def target(self, member_id: str) -> T:
        """Returns the member's target assignment; empty if it has none."""
        return self.targets.get(member_id, self.no_target)

    def target_of(self, member: M) -> T:
        """Returns the target assignment of a member, which may be joining."""
        return self.target(member.member_id)

    def cancel_timers(self, timers: Timers) -> None:
        for member_id in self.members:
            cancel_all(timers, self.group_id, member_id)

    def tombstones(self) -> list[GroupRecord]:
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[GroupRecord]:
        """Returns the records that delete the group, with these members."""
        group_id, records, names = self.group_id, self.records, list(member_ids)
        return [
            *(records.current_gone(group_id, member_id) for member_id in names),
            *(records.target_gone(group_id, member_id) for member_id in names),
            records.target_epoch_gone(group_id),
            *(records.member_gone(group_id, member_id) for member_id in names),
            *self.own_tombstones(),
            records.epoch_gone(group_id),
        ]

    @abstractmethod
    def own_tombstones(self) -> list[GroupRecord]:
        """Returns the tombstones of records that only groups of this type have."""

    # Changes, which only the replay of records makes.

    @abstractmethod
    def put(self, member: M) -> None:
        """Adds or replaces a member."""

    @abstractmethod
    def remove(self, member_id: str) -> None:
        """Removes a member."""

    def put_target(self, member_id: str, assignment: T) -> None:
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
