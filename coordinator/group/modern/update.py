"""The steps that decisions on a member of a consumer group or share group share.

A member that joins or changes may change the group's subscriptions and so its epoch; a new epoch needs a new target
assignment; and the member then takes a step towards it, which differs by type. Source: Kafka's GroupMetadataManager
and TargetAssignmentBuilder (KIP-848, KIP-932, KIP-1263).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.modern.group import Checked, ModernGroup, note_check
from coordinator.group.modern.records import ModernMember, changed_targets
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState

M = TypeVar("M", bound=ModernMember)

ANY_TIME: Final = 0
"""The time of a target assignment that was never computed here: it may be replaced at once."""


class MemberTarget(NamedTuple):
    """A member's target, and its group epoch."""

    epoch: int
    assignment: Assignment


class ModernUpdate(ABC, Generic[M]):
    """A change of one member of a group. `group` may be new, and created by this decision's records."""

    def __init__(self, state: GroupState, group: ModernGroup[M], result: GroupResult, now_ms: int) -> None:
        self.state = state
        self.group = group
        self.result = result
        self.now_ms = now_ms

    @abstractmethod
    def subscribed(self, before: M, after: M) -> Iterable[str]:
        """Returns the topics that members subscribe to after the change."""

    @property
    @abstractmethod
    def assignment_interval_ms(self) -> int:
        """The shortest time between two target assignments; 0 for none."""

    @abstractmethod
    def assigned(self, before: M, after: M) -> Mapping[str, Assignment]:
        """Returns every member's target in a new target assignment, after the change."""

    def epoch(self, before: M, after: M, *, bump: bool) -> int:
        """Returns the group's epoch after the decision: the next epoch if the member's change needs it (`bump`), or if
        the topics have changed since the last check."""
        group, watch = self.group, self.state.watch
        if not bump and group.checked.changes == watch.changes and group.epoch >= group.checked.group_epoch:
            return group.epoch
        metadata_hash = watch.group_hash(self.subscribed(before, after))
        epoch = group.epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            self.result.records.append(group.records.epoch(group.group_id, epoch, metadata_hash))
        self.result.effect(note_check, self.state, group.group_id, Checked(watch.changes, epoch))
        return epoch

    def last_target(self, member: M) -> MemberTarget:
        """Returns the member's present target."""
        return MemberTarget(self.group.assignment_epoch, self.group.target_of(member))

    def target(self, before: M, after: M, epoch: int) -> MemberTarget:
        """Returns the member's target, from a new target assignment if the epoch needs it and the last is old
        enough."""
        group = self.group
        if group.assignment_epoch >= epoch or not self.may_assign():
            return self.last_target(after)
        targets = self.assigned(before, after)
        for member_id, target in changed_targets(group.targets, targets).items():
            self.result.records.append(group.records.target(group.group_id, member_id, target))
        self.result.records.append(group.records.target_epoch(group.group_id, epoch, self.now_ms))
        return MemberTarget(epoch, targets.get(after.member_id, NOTHING))

    def may_assign(self) -> bool:
        """True if the last target assignment is old enough."""
        assigned_at_ms, interval_ms = self.group.assigned_at_ms, self.assignment_interval_ms
        return assigned_at_ms == ANY_TIME or not interval_ms or self.now_ms >= assigned_at_ms + interval_ms
