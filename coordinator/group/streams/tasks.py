"""Tasks of a streams group, and the tasks of a member.

A task is a partition number of a subtopology: it reads this partition of each source topic of the subtopology. Source:
Kafka's TaskId and TasksTuple (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar


class TaskId(NamedTuple):
    """A task's id."""

    subtopology_id: str
    partition: int


class TaskIds(Protocol):
    """The tasks of one subtopology, in a message or a record."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> list[int]: ...


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class NewTaskIds(Protocol[T_co]):
    """A class of TaskIds, which makes an instance."""

    def __call__(self, *, subtopology_id: str, partitions: list[int]) -> T_co: ...


class Tasks:
    """An immutable set of tasks, iterated in order. `Tasks({"0": [2, 1]})` has the tasks 0_1 and 0_2."""

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Mapping[str, Iterable[int]] | None = None) -> None:
        sets = {subtopology_id: frozenset(indexes) for subtopology_id, indexes in (partitions or {}).items()}
        self._partitions: Final = {
            subtopology_id: sets[subtopology_id] for subtopology_id in sorted(sets) if sets[subtopology_id]
        }

    @staticmethod
    def of(tasks: Iterable[tuple[str, int]]) -> Tasks:
        """Returns the set of these tasks."""
        partitions: dict[str, list[int]] = {}
        for subtopology_id, partition in tasks:
            partitions.setdefault(subtopology_id, []).append(partition)
        return Tasks(partitions)

    @staticmethod
    def from_ids(ids: Iterable[TaskIds]) -> Tasks:
        """Returns the tasks in a message or a record; a repeated subtopology adds its partitions."""
        return Tasks.of((entry.subtopology_id, partition) for entry in ids for partition in entry.partitions)

    def ids(self, new: NewTaskIds[T]) -> list[T]:
        """Returns the tasks for a message or a record, as instances of its class."""
        return [
            new(subtopology_id=subtopology_id, partitions=sorted(indexes))
            for subtopology_id, indexes in self._partitions.items()
        ]

    @property
    def partitions(self) -> Mapping[str, frozenset[int]]:
        """The partitions of each subtopology that has tasks in the set, ordered by subtopology id."""
        return self._partitions

    @property
    def is_empty(self) -> bool:
        return not self._partitions

    def union(self, other: Tasks) -> Tasks:
        """Returns the tasks in either set."""
        mine, others = self._partitions, other._partitions
        return Tasks({name: mine.get(name, _NONE) | others.get(name, _NONE) for name in mine.keys() | others.keys()})

    def difference(self, other: Tasks) -> Tasks:
        """Returns the tasks that are not in the other set."""
        others = other._partitions
        return Tasks({name: indexes - others.get(name, _NONE) for name, indexes in self._partitions.items()})

    def intersection(self, other: Tasks) -> Tasks:
        """Returns the tasks in both sets."""
        others = other._partitions
        return Tasks({name: indexes & others.get(name, _NONE) for name, indexes in self._partitions.items()})

    __or__ = union
    __sub__ = difference
    __and__ = intersection

    def isdisjoint(self, other: Tasks) -> bool:
        """True if no task is in both sets."""
        others = other._partitions
        return all(indexes.isdisjoint(others.get(name, _NONE)) for name, indexes in self._partitions.items())

    def __iter__(self) -> Iterator[TaskId]:
        for subtopology_id, indexes in self._partitions.items():
            for partition in sorted(indexes):
                yield TaskId(subtopology_id, partition)

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def __contains__(self, task: tuple[str, int]) -> bool:
        subtopology_id, partition = task
        return partition in self._partitions.get(subtopology_id, _NONE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tasks) and self._partitions == other._partitions

    def __hash__(self) -> int:
        return hash(tuple(self._partitions.items()))

    def __repr__(self) -> str:
        return f"Tasks({ {name: sorted(indexes) for name, indexes in self._partitions.items()} })"


_NONE: Final[frozenset[int]] = frozenset()

NO_TASKS: Final = Tasks()


class TaskAssignment(NamedTuple):
    """A member's tasks: active tasks process records, standby tasks keep a copy of their state, and warm-up tasks build
    one before they become active."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return self.active.is_empty and self.standby.is_empty and self.warmup.is_empty


NOTHING: Final = TaskAssignment()
