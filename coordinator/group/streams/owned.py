"""The tasks that a member of a streams group owns.

Source: Kafka's TasksTupleWithEpochs (KIP-1071, KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from coordinator.group.streams.tasks import NO_TASKS, TaskAssignment, TaskId, TaskIds, Tasks
from protocol.coordinator_records.streams_group import CurrentTaskIds


class OwnedTasks(NamedTuple):
    """Active tasks with the epoch at which each was assigned, standby tasks and warm-up tasks."""

    active: Mapping[TaskId, int] = {}
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not self.active and self.standby.is_empty and self.warmup.is_empty

    def at_epoch(self, epoch: int) -> OwnedTasks:
        """Returns the same tasks, all assigned at one epoch."""
        return self._replace(active=dict.fromkeys(self.active, epoch))

    @property
    def assignment(self) -> TaskAssignment:
        """The tasks without epochs."""
        return TaskAssignment(Tasks.of(self.active), self.standby, self.warmup)


NOTHING_OWNED: Final = OwnedTasks()


def have_common(tasks: TaskAssignment, owned: OwnedTasks) -> bool:
    """True if a task is in both, in the same role."""
    return (
        any(task in owned.active for task in tasks.active)
        or not tasks.standby.isdisjoint(owned.standby)
        or not tasks.warmup.isdisjoint(owned.warmup)
    )


def is_within(tasks: TaskAssignment, owned: OwnedTasks) -> bool:
    """True if all tasks are owned, in the same roles."""
    return (
        all(task in owned.active for task in tasks.active)
        and (tasks.standby - owned.standby).is_empty
        and (tasks.warmup - owned.warmup).is_empty
    )


def from_record(
    active: Iterable[CurrentTaskIds], standby: Iterable[TaskIds], warmup: Iterable[TaskIds], member_epoch: int
) -> OwnedTasks:
    """Returns the tasks of a record. Records from before Kafka 4.3 have no assignment epochs: with the member's own
    epoch no commit is fenced wrongly."""
    with_epochs: dict[TaskId, int] = {}
    for entry in active:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [member_epoch] * len(entry.partitions)
        for partition, epoch in zip(entry.partitions, epochs, strict=True):
            with_epochs[TaskId(entry.subtopology_id, partition)] = epoch
    return OwnedTasks(with_epochs, Tasks.from_ids(standby), Tasks.from_ids(warmup))


def active_to_record(active: Mapping[TaskId, int]) -> list[CurrentTaskIds]:
    """Returns active tasks as a record has them."""
    entries = Tasks.of(active).ids(_current_ids)
    for entry in entries:
        entry.assignment_epochs = [active[TaskId(entry.subtopology_id, index)] for index in entry.partitions]
    return entries


def to_record(tasks: Tasks) -> list[CurrentTaskIds]:
    """Returns standby or warm-up tasks as a record has them."""
    return tasks.ids(_current_ids)


def _current_ids(*, subtopology_id: str, partitions: list[int]) -> CurrentTaskIds:
    return CurrentTaskIds(subtopology_id=subtopology_id, partitions=partitions, assignment_epochs=[])
