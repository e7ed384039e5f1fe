"""A streams group: its epochs, topology, members and target assignment, as in its records.

    Empty        no members
    NotReady     topics of the topology are missing, or have wrong partition counts
    Assigning    the group's epoch is ahead of its target assignment
    Reconciling  some member does not yet have its whole target assignment
    Stable       all members have theirs

Only replay changes it, record by record; the methods whose names begin with `note` change soft state, and are effects.
Source: Kafka's StreamsGroup (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from coordinator.group.group import CommitCheck, GroupType, any_partition
from coordinator.group.modern.group import NO_EPOCH
from coordinator.group.modern.static_members import StaticGroup
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import GroupRecord
from coordinator.group.streams import records
from coordinator.group.streams.commits import check_epoch, commit_check
from coordinator.group.streams.configured import ConfiguredTopology
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.owned import OwnedTasks
from coordinator.group.streams.records import Description
from coordinator.group.streams.task_offsets import MAX_OFFSETS, NO_OFFSETS, TaskOffsets
from coordinator.group.streams.tasks import NOTHING, TaskAssignment, TaskId, Tasks
from coordinator.group.streams.topology import Topology
from coordinator.group.timers import Timers

PROTOCOL_TYPE: Final = "streams"


class StreamsGroupState(Enum):
    """The state of a group, as Kafka prints it; Dead is reported for a group that doesn't exist."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


def initial_delay_key(group_id: str) -> tuple[str, str]:
    """Returns the key of the timer that delays the first assignment."""
    return "streams initial rebalance", group_id


class StreamsGroup(StaticGroup[StreamsMember, TaskAssignment]):
    """`coordinator.group.group.Group` of the members of a Kafka Streams application."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.records = records.COMMON
        self.no_target = NOTHING
        self.topology: Topology | None = None
        self.subtopology_of: dict[str, str] = {}
        """The subtopology that reads each topic."""
        self.description = Description()
        self.configured: ConfiguredTopology | None = None
        """The topology with partition counts, which is only in memory; None after the group is loaded."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """The progress of restorations that members reported, which is only in memory."""
        self.shutdown_by: str | None = None
        """The member that requested the shutdown of the whole application."""
        self.endpoint_epoch = 0
        """The number of changes of endpoints and their tasks, which is only in memory."""
        self._active: dict[TaskId, str] = {}
        """The process of each active task that a member owns or must give up."""
        self._standby: dict[TaskId, set[str]] = {}
        self._warmup: dict[TaskId, set[str]] = {}

    def __repr__(self) -> str:
        return f"StreamsGroup({self.group_id!r}, {self.state_name}, epoch {self.epoch}, {list(self.members)})"

    # What every group has (coordinator.group.group.Group).

    @property
    def type(self) -> GroupType:
        return GroupType.STREAMS

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def expires(self) -> bool:
        return True

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and topic in self.subtopology_of

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        if generation_or_epoch < 0 and not self.members:
            return any_partition  # an administrator
        if transactional and generation_or_epoch == NO_EPOCH and not member_id and instance_id is None:
            return any_partition  # a producer that sends nothing about its group
        subtopologies = None if self.topology is None else self.subtopology_of
        member = self.member(member_id)
        return commit_check(subtopologies, member, generation_or_epoch, version, transactional=transactional)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            check_epoch(self.member(member_id or ""), member_epoch)

    def check_offset_delete(self) -> None:
        """Raises nothing: OffsetDelete checks the topics that the topology reads."""

    def retained_from_ms(self, offset: Offset) -> int | None:
        return offset.commit_timestamp_ms

    def cancel_timers(self, timers: Timers) -> None:
        super().cancel_timers(timers)
        timers.cancel(initial_delay_key(self.group_id))

    def own_tombstones(self) -> list[GroupRecord]:
        return [records.topology_gone(self.group_id)]

    # Queries.

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.description.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def active_process(self, task: TaskId) -> str | None:
        """Returns the process of the member that owns an active task or has not yet given it up."""
        return self._active.get(task)

    def is_standby(self, task: TaskId, process_id: str) -> bool:
        """True if a member of the process has the standby task, or has not yet given it up."""
        return process_id in self._standby.get(task, ())

    def is_warmup(self, task: TaskId, process_id: str) -> bool:
        """True if a member of the process has the warm-up task, or has not yet given it up."""
        return process_id in self._warmup.get(task, ())

    def offsets_of(self, member_id: str) -> TaskOffsets:
        """Returns the progress that a member last reported."""
        return self.task_offsets.get(member_id, NO_OFFSETS)

    # Changes by records.

    def put(self, member: StreamsMember) -> None:
        """Adds or updates a member."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        for owned in (member.assigned, member.pending_revocation):
            self._hold(owned, member.process_id)
        self.put_instance(before, member)

    def remove(self, member_id: str) -> None:
        """Removes a member."""
        member = self.members.pop(member_id)
        self._release(member)
        self.remove_instance(member)
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_by = None

    def put_topology(self, topology: Topology | None) -> None:
        """Sets or removes the topology."""
        self.topology = topology
        self.configured = None
        self.subtopology_of = {
            topic: subtopology_id
            for subtopology_id, subtopology in (topology.subtopologies.items() if topology else ())
            for topic in subtopology.inputs
        }

    def _hold(self, owned: OwnedTasks, process_id: str) -> None:
        self._active.update(dict.fromkeys(owned.active, process_id))
        for tasks, processes in ((owned.standby, self._standby), (owned.warmup, self._warmup)):
            for task in tasks:
                processes.setdefault(task, set()).add(process_id)

    def _release(self, member: StreamsMember) -> None:
        """Releases a member's tasks, except active tasks that another process has taken since."""
        for owned in (member.assigned, member.pending_revocation):
            for task in owned.active:
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            _discard(self._standby, owned.standby, member.process_id)
            _discard(self._warmup, owned.warmup, member.process_id)

    # Soft state.

    def note_configured(self, configured: ConfiguredTopology) -> None:
        """Remembers the topology with partition counts."""
        self.configured = configured

    def note_task_offsets(self, member_id: str, offsets: TaskOffsets) -> None:
        """Remembers a member's progress; forgets it if the group has too many offsets."""
        self.task_offsets.pop(member_id, None)
        others = sum(reported.size for reported in self.task_offsets.values())
        if member_id in self.members and others + offsets.size <= MAX_OFFSETS:
            self.task_offsets[member_id] = offsets

    def note_shutdown(self, member_id: str) -> None:
        """Remembers the first member that requested the shutdown of the application, until the group is empty."""
        if self.members and self.shutdown_by is None:
            self.shutdown_by = member_id

    def note_endpoints(self, epoch: int) -> None:
        """Remembers the number of changes of endpoints."""
        self.endpoint_epoch = epoch


def _discard(processes: Mapping[TaskId, set[str]], tasks: Tasks, process_id: str) -> None:
    for task in tasks:
        if task in processes:
            processes[task].discard(process_id)
