"""The tasks that a member of a streams group owns, as sets of task ids.

Source: Kafka's TasksTupleWithEpochs (KIP-1071, KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from coordinator.group.streams.tasks import TaskAssignment, Tasks
from protocol.coordinator_records.streams_group import CurrentTaskIds

TaskId: TypeAlias = tuple[str, int]
"""A subtopology and one of its partitions."""

TaskSet: TypeAlias = frozenset[TaskId]

NO_TASKS: Final[TaskSet] = frozenset()


class OwnedTasks(NamedTuple):
    """Active tasks with the epoch at which each was assigned, standby tasks and warm-up tasks."""

    active: Mapping[TaskId, int] = {}
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def meets(self, other: OwnedTasks) -> bool:
        """True if both have a task in the same role."""
        return (
            not self.active.keys().isdisjoint(other.active)
            or not self.standby.isdisjoint(other.standby)
            or not self.warmup.isdisjoint(other.warmup)
        )

    def is_within(self, other: OwnedTasks) -> bool:
        """True if the other has each of these tasks in the same role."""
        return (
            self.active.keys() <= other.active.keys()
            and self.standby <= other.standby
            and self.warmup <= other.warmup
        )

    def at_epoch(self, epoch: int) -> OwnedTasks:
        """Returns the same tasks, all assigned at one epoch."""
        return self._replace(active=dict.fromkeys(self.active, epoch))

    @property
    def assignment(self) -> TaskAssignment:
        """The tasks without epochs, by subtopology."""
        return TaskAssignment(by_subtopology(self.active), by_subtopology(self.standby), by_subtopology(self.warmup))


NOTHING_OWNED: Final = OwnedTasks()


def by_subtopology(task_ids: Iterable[TaskId]) -> Tasks:
    """Returns the tasks by subtopology, in order."""
    tasks: dict[str, list[int]] = {}
    for subtopology, partition in sorted(task_ids):
        tasks.setdefault(subtopology, []).append(partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in tasks.items()}


def task_set(tasks: Tasks) -> TaskSet:
    """Returns the ids of tasks that are given by subtopology."""
    return frozenset((subtopology, index) for subtopology, partitions in tasks.items() for index in partitions)


def owned_at(assignment: TaskAssignment, epoch: int) -> OwnedTasks:
    """Returns an assignment with all of it assigned at one epoch."""
    active = dict.fromkeys(task_set(assignment.active), epoch)
    return OwnedTasks(active, task_set(assignment.standby), task_set(assignment.warmup))


def active_from_record(tasks: Iterable[CurrentTaskIds], member_epoch: int) -> dict[TaskId, int]:
    """Returns the active tasks of a record. Records from before Kafka 4.3 have no assignment epochs: with the member's
    own epoch no commit is fenced wrongly."""
    active: dict[TaskId, int] = {}
    for entry in tasks:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [member_epoch] * len(entry.partitions)
        active.update(
            ((entry.subtopology_id, index), epoch) for index, epoch in zip(entry.partitions, epochs, strict=True)
        )
    return active


def set_from_record(tasks: Iterable[CurrentTaskIds]) -> TaskSet:
    """Returns the standby or warm-up tasks of a record."""
    return frozenset((entry.subtopology_id, index) for entry in tasks for index in entry.partitions)


def active_to_record(active: Mapping[TaskId, int]) -> list[CurrentTaskIds]:
    """Returns active tasks as a record has them."""
    entries = []
    for subtopology, partitions in by_subtopology(active).items():
        indexes = sorted(partitions)
        epochs = [active[subtopology, index] for index in indexes]
        entries.append(CurrentTaskIds(subtopology_id=subtopology, partitions=indexes, assignment_epochs=epochs))
    return entries


def set_to_record(task_ids: TaskSet) -> list[CurrentTaskIds]:
    """Returns standby or warm-up tasks as a record has them."""
    return [
        CurrentTaskIds(subtopology_id=subtopology, partitions=sorted(partitions), assignment_epochs=[])
        for subtopology, partitions in by_subtopology(task_ids).items()
    ]
