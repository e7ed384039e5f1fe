"""Reconciliation: one step of a member from its tasks to its target assignment.

A member first gives up tasks, then moves to the target's epoch, then gets tasks that other members have given up:

    STABLE            the target is newer              → a step towards the target
    UNREVOKED_TASKS   it still owns tasks to give up   → stays, until it confirms
    UNRELEASED_TASKS  each heartbeat                   → gets tasks that are free now
    UNKNOWN           it owns nothing                  → starts over; otherwise it is fenced

An active task is free if no member has it. Besides, one process never has a task twice, because all members of a
process share a state directory: a task in any role waits until other members of the process have given it up. A task
that only changes its role within the member changes it in one step.

Source: Kafka's CurrentAssignmentBuilder (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple, Protocol

from coordinator.group.streams.owned import NOTHING_OWNED, OwnedTasks, have_common
from coordinator.group.streams.tasks import NO_TASKS, TaskAssignment, TaskId, Tasks
from protocol.errors import ErrorCode, KafkaError

Claimed = TaskAssignment | None
"""The tasks that a member says it owns; None if its heartbeat doesn't say, because nothing changed."""


class StreamsMemberState(IntEnum):
    """A member's progress towards the target assignment."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """The member has not yet confirmed that it gave up tasks."""
    UNRELEASED_TASKS = 3
    """The member waits for tasks that other members have not yet given up."""
    UNKNOWN = 127
    """A state of a later Kafka version."""


class Holders(Protocol):
    """Looks up the processes whose members have a task, or have not yet given it up."""

    def active_process(self, task: TaskId) -> str | None: ...

    def is_standby(self, task: TaskId, process_id: str) -> bool: ...

    def is_warmup(self, task: TaskId, process_id: str) -> bool: ...


class MemberStanding(NamedTuple):
    """A member's place in the reconciliation."""

    state: StreamsMemberState
    epoch: int
    assigned: OwnedTasks
    pending_revocation: OwnedTasks


class TaskStep(NamedTuple):
    """The inputs of a step, besides the member's standing."""

    target_epoch: int
    target: TaskAssignment
    process_id: str
    claimed: Claimed
    holders: Holders


def reconcile(before: MemberStanding, step: TaskStep) -> MemberStanding:
    """Returns the standing after the step; the same object if there is nothing to do. Raises FENCED_MEMBER_EPOCH for a
    member in an unknown state that owns tasks."""
    return _STEPS[before.state](before, step)


def _stable(before: MemberStanding, step: TaskStep) -> MemberStanding:
    return before if before.epoch == step.target_epoch else _advance(before, before.epoch, step)


def _unrevoked(before: MemberStanding, step: TaskStep) -> MemberStanding:
    if _keeps(step.claimed, before.pending_revocation):
        return before
    return _advance(before, before.epoch + 1, step)


def _unreleased(before: MemberStanding, step: TaskStep) -> MemberStanding:
    return _advance(before, before.epoch, step)


def _unknown(before: MemberStanding, step: TaskStep) -> MemberStanding:
    if step.claimed is None or not step.claimed.is_empty:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )
    return _advance(before, step.target_epoch, step)


_STEPS: Mapping[StreamsMemberState, Callable[[MemberStanding, TaskStep], MemberStanding]] = {
    StreamsMemberState.STABLE: _stable,
    StreamsMemberState.UNREVOKED_TASKS: _unrevoked,
    StreamsMemberState.UNRELEASED_TASKS: _unreleased,
    StreamsMemberState.UNKNOWN: _unknown,
}


def _keeps(claimed: Claimed, revoked: OwnedTasks) -> bool:
    """True if the member still owns some of `revoked`, or doesn't say."""
    return claimed is None or have_common(claimed, revoked)


class _RoleChange(NamedTuple):
    """The tasks of one role to keep, to revoke and to add."""

    retained: Tasks
    revoked: Tasks
    added: Tasks
    waits: bool
    """True if some tasks to add aren't free."""


def _compare(owned: Tasks, target: Tasks, is_free: Callable[[TaskId], bool]) -> _RoleChange:
    missing = target - owned
    added = Tasks.of(task for task in missing if is_free(task))
    return _RoleChange(owned & target, owned - target, added, len(added) < len(missing))


def _advance(before: MemberStanding, epoch: int, step: TaskStep) -> MemberStanding:
    """Moves the member towards the target, up to the first tasks that the member must give up itself."""
    owned, target, free = before.assigned, step.target, _Free(before.assigned, step)
    was_active = Tasks.of(owned.active)
    active = _compare(was_active, target.active, free.as_active)
    standby = _compare(owned.standby, target.standby, free.as_standby)
    warmup = _compare(owned.warmup, target.warmup, free.as_warmup)

    standby = _at_once(standby, was_active)
    warmup, standby = _change_role(warmup, standby, owned.standby)
    standby, warmup = _change_role(standby, warmup, owned.warmup)

    revoked = OwnedTasks(
        {task: since for task, since in owned.active.items() if task in active.revoked},
        standby.revoked - target.active,
        warmup.revoked - target.active,
    )
    waits_for_member = not revoked.is_empty and _keeps(step.claimed, revoked)
    promoted = NO_TASKS if waits_for_member else active.added
    retained = OwnedTasks(
        {task: since for task, since in owned.active.items() if task in active.retained},
        standby.retained | ((owned.standby & target.active) - promoted),
        warmup.retained | ((owned.warmup & target.active) - promoted),
    )
    if waits_for_member:
        return MemberStanding(StreamsMemberState.UNREVOKED_TASKS, epoch, retained, revoked)
    waits_for_others = active.waits or standby.waits or warmup.waits
    assigned = OwnedTasks(
        {**retained.active, **dict.fromkeys(active.added, step.target_epoch)},
        retained.standby | standby.added,
        retained.warmup | warmup.added,
    )
    state = StreamsMemberState.UNRELEASED_TASKS if waits_for_others else StreamsMemberState.STABLE
    return MemberStanding(state, step.target_epoch, assigned, NOTHING_OWNED)


def _at_once(role: _RoleChange, tasks: Tasks) -> _RoleChange:
    """Returns the difference with those of `tasks` that it adds counted as retained: the member has their state."""
    now = role.added & tasks
    return role._replace(retained=role.retained | now, added=role.added - now)


def _change_role(gaining: _RoleChange, losing: _RoleChange, owned: Tasks) -> tuple[_RoleChange, _RoleChange]:
    """Returns both roles after tasks that the member owns in the losing role have changed to the gaining role."""
    now = gaining.added & owned
    return _at_once(gaining, owned), losing._replace(revoked=losing.revoked - now)


class _Free:
    """Decides if a member may get tasks that it doesn't own in the role."""

    def __init__(self, owned: OwnedTasks, step: TaskStep) -> None:
        self._owned = owned
        self._holders = step.holders
        self._process_id = step.process_id

    def as_active(self, task: TaskId) -> bool:
        return (
            self._holders.active_process(task) is None
            and not self._is_standby_elsewhere(task)
            and not self._is_warmup_elsewhere(task)
        )

    def as_standby(self, task: TaskId) -> bool:
        is_active_elsewhere = self._holders.active_process(task) == self._process_id and task not in self._owned.active
        return (
            not is_active_elsewhere
            and not self._holders.is_standby(task, self._process_id)
            and not self._is_warmup_elsewhere(task)
        )

    def as_warmup(self, task: TaskId) -> bool:
        return (
            self._holders.active_process(task) != self._process_id
            and not self._is_standby_elsewhere(task)
            and not self._holders.is_warmup(task, self._process_id)
        )

    def _is_standby_elsewhere(self, task: TaskId) -> bool:
        """True if another member of the process has the standby task."""
        return self._holders.is_standby(task, self._process_id) and task not in self._owned.standby

    def _is_warmup_elsewhere(self, task: TaskId) -> bool:
        return self._holders.is_warmup(task, self._process_id) and task not in self._owned.warmup
