"""The `sticky` assignor: members keep their tasks, and processes get equal loads.

An active task goes to the member that has it, or to a member with a copy of its state, while the member has less than
its share. The other tasks go to the process with the least load, in the order of their subtopologies, so that members
get the same partitions of all of them. A standby task goes to another process than its active task, because the members
of a process are its threads. Source: Kafka's StickyTaskAssignor and ProcessState (KIP-1071).

As in Kafka 4.4, the assignor reads no client tags, and assigns no warm-up tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from coordinator.group.streams.configured import ConfiguredSubtopology
from coordinator.group.streams.tasks import NOTHING, TaskAssignment, TaskId, Tasks


class StreamsMemberSpec(NamedTuple):
    """A member as the assignor sees it."""

    process_id: str
    assigned: TaskAssignment = NOTHING
    """The tasks that the member has now."""
    offsets: Mapping[TaskId, int] = {}
    """The offset of the state that the member has on its disk, by task: a sum over the task's changelogs."""


class StreamsGroupSpec(NamedTuple):
    """A group as the assignor sees it."""

    members: Mapping[str, StreamsMemberSpec]
    standby_replicas: int = 0


def assign_sticky(
    spec: StreamsGroupSpec, subtopologies: Mapping[str, ConfiguredSubtopology]
) -> dict[str, TaskAssignment]:
    """Returns the tasks of every member. The order of the members has no influence."""
    if not spec.members:
        return {}
    assignment = _Assignment(spec, subtopologies)
    assignment.assign_active()
    assignment.assign_standby()
    return assignment.result()


class _Share:
    """The number of tasks that a member may keep: the number of tasks divided by the number of members, rounded up.
    Once members have reached it, it is the share of the other tasks among the other members."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.size = -(-tasks // members)

    def note(self, count: int) -> None:
        """Records that a member has got its `count`th task."""
        if count == self.size:
            self._members -= 1
            self._tasks -= count
            self.size = -(-self._tasks // self._members) if self._members else 0


class _Process:
    """A process with its members, and the tasks that they have got so far."""

    def __init__(self, position: int) -> None:
        self.position = position
        """The process's place among the processes, which decides between equal loads."""
        self.counts: dict[str, int] = {}
        """The number of tasks of each member."""
        self.tasks: set[TaskId] = set()
        self.load = 0.0
        self._by_count: list[tuple[int, str]] = []
        """A heap of the members, which is empty if it is outdated."""

    def add(self, member_id: str, task: TaskId) -> int:
        """Adds a task, and returns the member's number of tasks."""
        self._by_count.clear()
        return self._add(member_id, task)

    def add_to_least_loaded(self, task: TaskId) -> str:
        """Adds a task to the member with the fewest tasks, and returns the member."""
        if not self._by_count:
            self._by_count = [(count, member_id) for member_id, count in self.counts.items()]
            heapify(self._by_count)
        member_id = self._by_count[0][1]
        heapreplace(self._by_count, (self._add(member_id, task), member_id))
        return member_id

    def _add(self, member_id: str, task: TaskId) -> int:
        self.tasks.add(task)
        self.counts[member_id] += 1
        self.load = len(self.tasks) / len(self.counts)
        return self.counts[member_id]


class _Owner(NamedTuple):
    """A member that had a task, or has state of it."""

    process: _Process
    member_id: str

    @property
    def task_count(self) -> int:
        return self.process.counts[self.member_id]


class _Assignment:
    """An assignment while it is made."""

    def __init__(self, spec: StreamsGroupSpec, subtopologies: Mapping[str, ConfiguredSubtopology]) -> None:
        self._replicas = spec.standby_replicas
        self._tasks = [
            TaskId(subtopology_id, partition)
            for subtopology_id, subtopology in sorted(subtopologies.items())
            for partition in range(subtopology.task_count)
        ]
        self._stateful = [task for task in self._tasks if subtopologies[task.subtopology_id].is_stateful]
        members = len(spec.members)
        self._active_share = _Share(len(self._tasks), members)
        self._share = _Share(len(self._tasks) + len(self._stateful) * self._replicas, members)
        self._processes: dict[str, _Process] = {}
        self._active_before: dict[TaskId, _Owner] = {}
        self._with_state: dict[TaskId, list[_Owner]] = {}
        """The members with a copy of a task's state, the best copy first."""
        self._read(spec)
        self._active: dict[str, list[TaskId]] = {member_id: [] for member_id in spec.members}
        self._standby: dict[str, list[TaskId]] = {member_id: [] for member_id in spec.members}

    def _read(self, spec: StreamsGroupSpec) -> None:
        exists = set(self._tasks)
        copies: dict[TaskId, list[tuple[bool, int, _Owner]]] = {}
        for member_id, member in sorted(spec.members.items()):
            process = self._processes.get(member.process_id)
            if process is None:
                process = self._processes[member.process_id] = _Process(len(self._processes))
            process.counts[member_id] = 0
            owner = _Owner(process, member_id)
            self._active_before.update(dict.fromkeys(member.assigned.active, owner))
            for task in member.assigned.standby:
                copies.setdefault(task, []).append((False, -member.offsets.get(task, 0), owner))
            for task, offset in member.offsets.items():
                if task in exists and task not in member.assigned.standby:
                    copies.setdefault(task, []).append((True, -offset, owner))
        for task, owners in copies.items():
            owners.sort(key=lambda copy: copy[:2])
            self._with_state[task] = [owner for _is_weaker, _offset, owner in owners]

    def assign_active(self) -> None:
        """Assigns every active task."""
        left = self._keep(sorted(self._tasks, key=_by_partition), self._active_before.get)
        left = self._keep(left, self._best_copy)
        heap = self._by_load()
        for task in sorted(left):
            process = heap[0][2]
            member_id = process.add_to_least_loaded(task)
            self._note_active(member_id, task, process.counts[member_id])
            heapreplace(heap, (process.load, process.position, process))

    def assign_standby(self) -> None:
        """Assigns the standby tasks for which there are enough processes."""
        if not self._replicas:
            return
        left: list[tuple[TaskId, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            missing = self._stand_by_with_state(task)
            if missing:
                left.append((task, missing))
        heap = self._by_load()
        for task, missing in sorted(left, reverse=True):
            for _ in range(missing):
                if not self._stand_by_at_least_loaded(task, heap):
                    break

    def result(self) -> dict[str, TaskAssignment]:
        """Returns the tasks of every member."""
        return {
            member_id: TaskAssignment(Tasks.of(active), Tasks.of(self._standby[member_id]))
            for member_id, active in self._active.items()
        }

    def _keep(self, tasks: Iterable[TaskId], owner_of: Callable[[TaskId], _Owner | None]) -> list[TaskId]:
        """Assigns tasks to their owners while these have less than their share; returns the other tasks."""
        left: list[TaskId] = []
        for task in tasks:
            owner = owner_of(task)
            if owner is None or owner.task_count >= self._active_share.size:
                left.append(task)
            else:
                self._note_active(owner.member_id, task, owner.process.add(owner.member_id, task))
        return left

    def _note_active(self, member_id: str, task: TaskId, count: int) -> None:
        self._active[member_id].append(task)
        self._active_share.note(count)
        self._share.note(count)

    def _note_standby(self, member_id: str, task: TaskId, count: int) -> None:
        self._standby[member_id].append(task)
        self._share.note(count)

    def _best_copy(self, task: TaskId) -> _Owner | None:
        """Returns the member with the best copy of the task's state, or a member with less load; not in a process that
        has the task already."""
        best: _Owner | None = None
        for owner in self._with_state.get(task, ()):
            if task in owner.process.tasks:
                continue
            if best is None or (owner.process.load < best.process.load and owner.task_count < best.task_count):
                best = owner
        return best

    def _stand_by_with_state(self, task: TaskId) -> int:
        """Assigns standby tasks to members that have the task's state, and returns the number of missing replicas."""
        for placed in range(self._replicas):
            owner = self._active_before.get(task)
            if owner is None or task in owner.process.tasks or owner.task_count >= self._share.size:
                owner = self._best_copy(task)
            if owner is None or owner.task_count >= self._share.size:
                return self._replicas - placed
            self._note_standby(owner.member_id, task, owner.process.add(owner.member_id, task))
        return 0

    def _stand_by_at_least_loaded(self, task: TaskId, heap: list[tuple[float, int, _Process]]) -> bool:
        """Assigns a standby task to the process with the least load that doesn't have the task; False if all have
        it."""
        having: list[tuple[float, int, _Process]] = []
        while heap and task in heap[0][2].tasks:
            having.append(heappop(heap))
        found = bool(heap)
        if heap:
            process = heap[0][2]
            member_id = process.add_to_least_loaded(task)
            self._note_standby(member_id, task, process.counts[member_id])
            heapreplace(heap, (process.load, process.position, process))
        for entry in having:
            heappush(heap, entry)
        return found

    def _by_load(self) -> list[tuple[float, int, _Process]]:
        """Returns a heap of the processes, by load."""
        heap = [(process.load, process.position, process) for process in self._processes.values()]
        heapify(heap)
        return heap


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id
