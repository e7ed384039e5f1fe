"""Tests steps of members towards their targets, with the cases of Apache Kafka's CurrentAssignmentBuilderTest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from coordinator.group.streams.owned import NOTHING_OWNED, OwnedTasks
from coordinator.group.streams.reconciliation import Claimed, MemberStanding, StreamsMemberState, TaskStep, reconcile
from coordinator.group.streams.tasks import TaskAssignment, TaskId, Tasks
from protocol.errors import ErrorCode, KafkaError

EPOCH, TARGET_EPOCH = 10, 11
ME, OTHER = "process", "other process"
STABLE, UNREVOKED, UNRELEASED = (
    StreamsMemberState.STABLE,
    StreamsMemberState.UNREVOKED_TASKS,
    StreamsMemberState.UNRELEASED_TASKS,
)


class Processes:
    """The processes that have tasks: the member's own tasks, and tasks that a test adds."""

    def __init__(
        self,
        active: Mapping[int, str] | None = None,
        standby: Mapping[int, str] | None = None,
        warmup: Mapping[int, str] | None = None,
    ) -> None:
        self.active, self.standby, self.warmup = dict(active or {}), dict(standby or {}), dict(warmup or {})

    def active_process(self, task: TaskId) -> str | None:
        return self.active.get(task.partition)

    def is_standby(self, task: TaskId, process_id: str) -> bool:
        return self.standby.get(task.partition) == process_id

    def is_warmup(self, task: TaskId, process_id: str) -> bool:
        return self.warmup.get(task.partition) == process_id

    def with_own(self, owned: OwnedTasks) -> Processes:
        self.active.update({task.partition: ME for task in owned.active})
        self.standby.update({task.partition: ME for task in owned.standby})
        self.warmup.update({task.partition: ME for task in owned.warmup})
        return self


def tasks(*partitions: int) -> Tasks:
    return Tasks({"0": partitions})


def owned(active: Iterable[int] = (), standby: Iterable[int] = (), warmup: Iterable[int] = ()) -> OwnedTasks:
    return OwnedTasks({TaskId("0", index): EPOCH for index in active}, tasks(*standby), tasks(*warmup))


def given(active: Iterable[int] = (), standby: Iterable[int] = (), warmup: Iterable[int] = ()) -> OwnedTasks:
    """Returns tasks that the member gets with the target."""
    return owned(active, standby, warmup).at_epoch(TARGET_EPOCH)


def assignment(active: Iterable[int] = (), standby: Iterable[int] = (), warmup: Iterable[int] = ()) -> TaskAssignment:
    return TaskAssignment(tasks(*active), tasks(*standby), tasks(*warmup))


def step(
    before: MemberStanding, target: TaskAssignment, *, epoch: int = TARGET_EPOCH, claimed: Claimed = None,
    others: Processes | None = None,
) -> MemberStanding:  # fmt: skip
    holders = (others or Processes()).with_own(before.assigned).with_own(before.pending_revocation)
    return reconcile(before, TaskStep(epoch, target, ME, claimed, holders))


def stable(assigned: OwnedTasks) -> MemberStanding:
    return MemberStanding(STABLE, EPOCH, assigned, NOTHING_OWNED)


def both(first: OwnedTasks, second: OwnedTasks) -> OwnedTasks:
    return OwnedTasks({**first.active, **second.active}, first.standby | second.standby, first.warmup | second.warmup)


@pytest.mark.parametrize("role", ["active", "standby", "warmup"])
def test_a_member_keeps_its_tasks_in_a_new_epoch(role: str) -> None:
    before = stable(owned(**{role: (1, 2)}))
    assert step(before, assignment(**{role: (1, 2)})) == before._replace(epoch=TARGET_EPOCH)
    assert step(before, assignment(**{role: (1, 2)}), epoch=EPOCH) is before


def test_free_tasks_are_added_at_once_with_the_epoch_of_the_target() -> None:
    after = step(stable(owned((1,))), assignment((1, 2)))
    assert after == MemberStanding(STABLE, TARGET_EPOCH, both(owned((1,)), given((2,))), NOTHING_OWNED)


@pytest.mark.parametrize("role", ["active", "standby", "warmup"])
def test_tasks_are_given_up_before_the_epoch_changes(role: str) -> None:
    before = stable(owned(**{role: (1, 2)}))
    target = assignment(**{role: (2, 3)})
    after = step(before, target)
    assert after == MemberStanding(UNREVOKED, EPOCH, owned(**{role: (2,)}), owned(**{role: (1,)}))
    assert step(after, target) is after
    assert step(after, target, claimed=assignment(**{role: (1, 2)})) is after
    assert step(after, target, claimed=assignment(**{role: (2,)})) == MemberStanding(
        STABLE, TARGET_EPOCH, both(owned(**{role: (2,)}), given(**{role: (3,)})), NOTHING_OWNED
    )


def test_a_member_that_must_give_up_more_has_the_next_epoch_meanwhile() -> None:
    before = MemberStanding(UNREVOKED, EPOCH, owned((2, 3)), owned((1,)))
    after = step(before, assignment((3,)), claimed=assignment((2, 3)), epoch=TARGET_EPOCH + 1)
    assert after == MemberStanding(UNREVOKED, EPOCH + 1, owned((3,)), owned((2,)))


def test_a_member_that_owns_none_of_the_revoked_tasks_advances_at_once() -> None:
    after = step(stable(owned((1, 2))), assignment((2,)), claimed=assignment((2,)))
    assert after == MemberStanding(STABLE, TARGET_EPOCH, owned((2,)), NOTHING_OWNED)


@pytest.mark.parametrize(
    ("role", "others"),
    [
        ("active", Processes(active={3: OTHER})),
        ("active", Processes(active={3: ME})),
        ("active", Processes(standby={3: ME})),
        ("active", Processes(warmup={3: ME})),
        ("standby", Processes(active={3: ME})),
        ("standby", Processes(standby={3: ME})),
        ("standby", Processes(warmup={3: ME})),
        ("warmup", Processes(active={3: ME})),
        ("warmup", Processes(standby={3: ME})),
        ("warmup", Processes(warmup={3: ME})),
    ],
)
def test_a_task_waits_until_it_is_released(role: str, others: Processes) -> None:
    target = assignment(**{role: (3,)})
    after = step(stable(NOTHING_OWNED), target, others=others)
    assert after == MemberStanding(UNRELEASED, TARGET_EPOCH, NOTHING_OWNED, NOTHING_OWNED)
    assert step(after, target) == MemberStanding(STABLE, TARGET_EPOCH, given(**{role: (3,)}), NOTHING_OWNED)


@pytest.mark.parametrize(
    ("role", "others"),
    [
        ("active", Processes(standby={3: OTHER}, warmup={3: OTHER})),
        ("standby", Processes(active={3: OTHER}, standby={3: OTHER}, warmup={3: OTHER})),
        ("warmup", Processes(active={3: OTHER}, standby={3: OTHER}, warmup={3: OTHER})),
    ],
)
def test_copies_of_other_processes_are_no_obstacle(role: str, others: Processes) -> None:
    after = step(stable(NOTHING_OWNED), assignment(**{role: (3,)}), others=others)
    assert after.state is STABLE


def test_some_tasks_are_added_while_others_are_awaited() -> None:
    after = step(stable(NOTHING_OWNED), assignment((1, 2)), others=Processes(active={2: OTHER}))
    assert after == MemberStanding(UNRELEASED, TARGET_EPOCH, given((1,)), NOTHING_OWNED)


def test_a_standby_task_becomes_active_in_one_step() -> None:
    after = step(stable(owned(standby=(1,))), assignment((1,)))
    assert after == MemberStanding(STABLE, TARGET_EPOCH, given((1,)), NOTHING_OWNED)


def test_a_standby_task_is_kept_until_the_active_task_is_free() -> None:
    after = step(stable(owned(standby=(1,))), assignment((1,)), others=Processes(active={1: OTHER}))
    assert after == MemberStanding(UNRELEASED, TARGET_EPOCH, owned(standby=(1,)), NOTHING_OWNED)
    assert step(after, assignment((1,))).assigned == given((1,))


def test_a_promotion_waits_for_the_tasks_that_the_member_must_give_up() -> None:
    after = step(stable(owned((2,), standby=(1,))), assignment((1,)))
    assert after == MemberStanding(UNREVOKED, EPOCH, owned(standby=(1,)), owned((2,)))


def test_an_active_task_becomes_a_standby_task_while_it_is_given_up() -> None:
    after = step(stable(owned((1,))), assignment(standby=(1,)))
    assert after == MemberStanding(UNREVOKED, EPOCH, owned(standby=(1,)), owned((1,)))
    after = step(after, assignment(standby=(1,)), claimed=assignment(standby=(1,)))
    assert after == MemberStanding(STABLE, TARGET_EPOCH, owned(standby=(1,)), NOTHING_OWNED)


@pytest.mark.parametrize(("before", "after"), [("standby", "warmup"), ("warmup", "standby")])
def test_copies_change_their_role_in_one_step(before: str, after: str) -> None:
    moved = step(stable(owned(**{before: (1,)})), assignment(**{after: (1,)}))
    assert moved == MemberStanding(STABLE, TARGET_EPOCH, owned(**{after: (1,)}), NOTHING_OWNED)


def test_a_member_in_an_unknown_state_starts_over_without_tasks() -> None:
    before = MemberStanding(StreamsMemberState.UNKNOWN, EPOCH, owned((1,)), NOTHING_OWNED)
    for claimed in (None, assignment((1,))):
        with pytest.raises(KafkaError) as error:
            step(before, assignment((1,)), claimed=claimed)
        assert error.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(before, assignment((1,)), claimed=assignment()).state is STABLE
