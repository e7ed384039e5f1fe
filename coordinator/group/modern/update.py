"""The steps that decisions on members share in consumer groups, share groups and streams groups.

A member that joins or changes may change the group's epoch, with its subscriptions or its topology; a new epoch needs a
new target assignment; and the member then takes a step towards it, which differs by type. Source: Kafka's
GroupMetadataManager and TargetAssignmentBuilder (KIP-848, KIP-932, KIP-1071, KIP-1263).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from coordinator.group.modern.group import Checked, ModernGroup, note_check
from coordinator.group.modern.records import ModernMember, changed_targets
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")

ANY_TIME: Final = 0
"""The time of a target assignment that was never computed here: it may be replaced at once."""


def write_end_of_targets(group: ModernGroup[M, T], leaving: int, epoch: int, result: GroupResult) -> None:
    """Writes the target assignment's epoch if all members leave (`leaving` is their number): nothing is left to assign,
    and the next target assignment may be made at any time."""
    if len(group.members) == leaving:
        result.records.append(group.records.target_epoch(group.group_id, epoch, ANY_TIME))


class MemberTarget(NamedTuple, Generic[T]):
    """A member's target, and its group epoch."""

    epoch: int
    assignment: T


class ModernUpdate(ABC, Generic[M, T]):
    """A change of one member of a group. `group` may be new, and created by this decision's records."""

    def __init__(self, state: GroupState, group: ModernGroup[M, T], result: GroupResult, now_ms: int) -> None:
        self.state = state
        self.group = group
        self.result = result
        self.now_ms = now_ms

    @property
    @abstractmethod
    def assignment_interval_ms(self) -> int:
        """The shortest time between two target assignments; 0 for none."""

    @property
    def is_checked(self) -> bool:
        """True if no topic has changed since the last check of the group's topics."""
        group = self.group
        return group.checked.changes == self.state.watch.changes and group.epoch >= group.checked.group_epoch

    def note_check(self, epoch: int) -> None:
        """Remembers the check of the group's topics, which resulted in this epoch."""
        checked = Checked(self.state.watch.changes, epoch)
        self.result.effect(note_check, self.state, self.group.group_id, checked)

    def may_assign(self) -> bool:
        """True if the last target assignment is old enough."""
        assigned_at_ms, interval_ms = self.group.assigned_at_ms, self.assignment_interval_ms
        return assigned_at_ms == ANY_TIME or not interval_ms or self.now_ms >= assigned_at_ms + interval_ms

    def last_target(self, member: M) -> MemberTarget[T]:
        """Returns the member's present target."""
        return MemberTarget(self.group.assignment_epoch, self.group.target_of(member))

    def write_targets(self, targets: Mapping[str, T], epoch: int) -> None:
        """Writes a new target assignment, which has every member's target."""
        group = self.group
        for member_id, target in changed_targets(group.targets, targets).items():
            self.result.records.append(group.records.target(group.group_id, member_id, target))
        self.result.records.append(group.records.target_epoch(group.group_id, epoch, self.now_ms))


class SubscriptionUpdate(ModernUpdate[M, T], ABC, Generic[M, T]):
    """A change of one member of a group whose members subscribe to topics."""

    @abstractmethod
    def subscribed(self, before: M, after: M) -> Iterable[str]:
        """Returns the topics that members subscribe to after the change."""

    @abstractmethod
    def assigned(self, before: M, after: M) -> Mapping[str, T]:
        """Returns every member's target in a new target assignment, after the change."""

    def epoch(self, before: M, after: M, *, bump: bool) -> int:
        """Returns the group's epoch after the decision: the next epoch if the member's change needs it (`bump`), or if
        the topics have changed since the last check."""
        group = self.group
        if not bump and self.is_checked:
            return group.epoch
        metadata_hash = self.state.watch.group_hash(self.subscribed(before, after))
        epoch = group.epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            self.result.records.append(group.records.epoch(group.group_id, epoch, metadata_hash))
        self.note_check(epoch)
        return epoch

    def target(self, before: M, after: M, epoch: int) -> MemberTarget[T]:
        """Returns the member's target, from a new target assignment if the epoch needs it and the last is old
        enough."""
        group = self.group
        if group.assignment_epoch >= epoch or not self.may_assign():
            return self.last_target(after)
        targets = self.assigned(before, after)
        self.write_targets(targets, epoch)
        return MemberTarget(epoch, targets.get(after.member_id, group.no_target))
