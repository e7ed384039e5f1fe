"""The steps of decisions on a member of a streams group. Source: Kafka's GroupMetadataManager (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from coordinator.engine.result import Result
from coordinator.group.config import GroupConfig
from coordinator.group.modern.update import MemberTarget, ModernUpdate
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState, TopicLookup
from coordinator.group.streams import records
from coordinator.group.streams.assignor import StreamsGroupSpec, StreamsMemberSpec, assign_sticky
from coordinator.group.streams.configured import ConfiguredTopology, configure
from coordinator.group.streams.fencing import DEADLINES
from coordinator.group.streams.group import StreamsGroup, initial_delay_key
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.reconciliation import Claimed, StreamsMemberState, TaskStep, reconcile
from coordinator.group.streams.status import GroupStatus, StatusCode
from coordinator.group.streams.tasks import NOTHING, TaskAssignment
from coordinator.group.streams.topology import Topology, invalid
from protocol.errors import ErrorCode, KafkaError

STANDBY_REPLICAS: Final = "num.standby.replicas"
REQUIRED_TAGS: Final = "rack.aware.assignment.tags"

MAX_INPUTS: Final = 250_000
"""Maximum number of partitions that all tasks of a topology read together. A small request can name a topic of many
partitions thousands of times; an application of 50 subtopologies with 1,000 tasks each, and five inputs, is within it.
"""

MAX_TASKS: Final = 50_000
"""Maximum number of tasks of a topology. To assign or reconcile as many occupies the event loop for 0.15 seconds. A
member that has all of them alone, as the first member does, has them in one record, which must fit into a batch."""


class StreamsUpdate(ModernUpdate[StreamsMember, TaskAssignment]):
    """A change of one member of a streams group."""

    group: StreamsGroup

    def __init__(self, state: GroupState, group: StreamsGroup, result: GroupResult, now_ms: int) -> None:
        super().__init__(state, group, result, now_ms)
        self.statuses: list[GroupStatus] = []
        """The statuses for the member, in Kafka's order."""
        self.config = state.environment.group_config(group.group_id)

    def later(self, change: Callable[[StreamsGroup], None]) -> None:
        """Changes the group's soft state once the records, which may create the group, are applied."""
        self.result.effect(_change, self.state, self.group.group_id, change)

    def describe(self, before: StreamsMember, after: StreamsMember, *, is_static: bool) -> bool:
        """Writes the member's description; returns True if the change needs a new epoch."""
        if after == before:
            return False
        self.result.records.append(records.COMMON.member(self.group.group_id, after))
        return not is_static or _assigned_by(before) != _assigned_by(after)

    def topology(self, after: StreamsMember, requested: Topology | None) -> Topology:
        """Returns the group's topology, which its first member sets. Raises INVALID_REQUEST for another topology, and
        UNKNOWN_SERVER_ERROR if the group has none."""
        present = self.group.topology
        if present is None:
            if requested is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, "The topology is null and the group topology is also null."
                )
            self.result.records.append(records.topology(self.group.group_id, requested))
            return requested
        if requested is not None and present.epoch <= requested.epoch and present != requested:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        if after.topology_epoch < present.epoch:
            detail = (
                f"The member's topology epoch {after.topology_epoch} is behind the group's topology epoch "
                f"{present.epoch}."
            )
            self.statuses.append(GroupStatus(StatusCode.STALE_TOPOLOGY, detail))
        return present

    def configure(self, topology: Topology, *, bump: bool) -> tuple[int, ConfiguredTopology]:
        """Returns the group's epoch after the decision, and the topology with partition counts. The epoch changes with
        the member (`bump`), the topics, or the options of the assignor."""
        group, description = self.group, self.group.description
        metadata_hash, configured = description.metadata_hash, group.configured
        if configured is None or not self.is_checked:
            metadata_hash = self.state.watch.group_hash(topology.required_topics())
            if configured is None or metadata_hash != description.metadata_hash:
                configured = configure(topology, self._partition_counts(topology.required_topics()))
                _check_size(configured)
                self.later(partial(StreamsGroup.note_configured, configured=configured))
        after = description._replace(
            metadata_hash=metadata_hash,
            validated_topology_epoch=topology.epoch if configured.is_ready else records.NONE,
            assignment_configs=assignment_configs(self.config),
        )
        epoch = group.epoch
        if bump or after != description:
            epoch += 1
            self.result.records.append(records.epoch(group.group_id, epoch, after))
        self.note_check(epoch)
        return epoch, configured

    def _partition_counts(self, names: Iterable[str]) -> dict[str, int]:
        topics = self.state.environment.topics
        return partition_counts(topics, names)

    def delay(self) -> bool:
        """Starts the delay of the first assignment if the group is empty; returns True while it lasts."""
        delay_ms = self.config.streams_initial_rebalance_delay_ms
        if initial_delay_key(self.group.group_id) in self.state.timers:
            return True
        if not self.group.is_empty or delay_ms <= 0:
            return False
        self.result.effect(_start_delay, self.state, self.group.group_id, self.now_ms + delay_ms)
        return True

    def assign_to(
        self, after: StreamsMember, epoch: int, configured: ConfiguredTopology
    ) -> MemberTarget[TaskAssignment]:
        """Returns the member's target, from a new target assignment if the epoch needs it and it may be made now."""
        group = self.group
        if self.delay():
            detail = "Assignment delayed due to the configured initial rebalance delay."
            self.statuses.append(GroupStatus(StatusCode.ASSIGNMENT_DELAYED, detail))
            return MemberTarget(group.assignment_epoch, NOTHING)
        if group.assignment_epoch >= epoch:
            return self.last_target(after)
        if not self.may_assign():
            detail = "Assignment delayed due to the configured assignment interval."
            self.statuses.append(GroupStatus(StatusCode.ASSIGNMENT_DELAYED, detail))
            return self.last_target(after)
        members, _replaced = group.members_with(after)
        targets = self.assign(members, epoch, configured)
        return MemberTarget(epoch, targets[after.member_id])

    def assign(
        self, members: Mapping[str, StreamsMember], epoch: int, configured: ConfiguredTopology
    ) -> Mapping[str, TaskAssignment]:
        """Writes and returns a new target assignment; without tasks while the topology isn't ready."""
        targets = dict.fromkeys(members, NOTHING)
        if configured.is_ready:
            specs = {
                member_id: StreamsMemberSpec(
                    member.process_id, member.assigned.assignment, self.group.offsets_of(member_id).offsets
                )
                for member_id, member in members.items()
            }
            spec = StreamsGroupSpec(specs, self.config.streams_num_standby_replicas)
            targets |= assign_sticky(spec, configured.subtopologies or {})
        self.write_targets(targets, epoch)
        return targets

    @property
    def assignment_interval_ms(self) -> int:
        return self.config.streams_assignment_interval_ms

    def move(self, member: StreamsMember, target: MemberTarget[TaskAssignment], claimed: Claimed) -> StreamsMember:
        """Moves the member one step towards its target, and sets its deadline to give up tasks. Raises
        FENCED_MEMBER_EPOCH as `reconcile` does."""
        if member.is_reconciled_to(target.epoch):
            return member
        group = self.group
        before = member.standing
        after = reconcile(before, TaskStep(target.epoch, target.assignment, member.process_id, claimed, group))
        if after is before:
            return member
        moved = member.moved_to(after)
        if moved != member:
            self.result.records.append(records.COMMON.current(group.group_id, moved))
            is_revoking = moved.state is StreamsMemberState.UNREVOKED_TASKS
            self.result.effect(
                DEADLINES.rebalance, self.state, group.group_id, moved, self.now_ms, is_revoking=is_revoking
            )
        return moved


def _check_size(configured: ConfiguredTopology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY if there are too many tasks, or if they would read too many partitions."""
    subtopologies = configured.subtopologies or {}
    inputs = sum(subtopology.task_count * len(subtopology.inputs) for subtopology in subtopologies.values())
    if inputs > MAX_INPUTS:
        raise invalid(f"The tasks of the topology read {inputs:,} partitions; they may read at most {MAX_INPUTS:,}.")
    tasks = sum(subtopology.task_count for subtopology in subtopologies.values())
    if tasks > MAX_TASKS:
        raise invalid(f"The topology has {tasks:,} tasks; it may have at most {MAX_TASKS:,}.")


def _assigned_by(member: StreamsMember) -> tuple[object, ...]:
    """Returns the parts of a description that an assignment depends on."""
    return member.topology_epoch, member.rack_id, member.client_tags, member.process_id


def assignment_configs(config: GroupConfig) -> dict[str, str]:
    """Returns the options of the assignor, as the group's record has them."""
    configs = {STANDBY_REPLICAS: str(config.streams_num_standby_replicas)}
    if config.streams_rack_aware_assignment_tags:
        configs[REQUIRED_TAGS] = ",".join(config.streams_rack_aware_assignment_tags)
    return configs


def partition_counts(topics: TopicLookup, names: Iterable[str]) -> dict[str, int]:
    """Returns the partition counts of the topics that exist."""
    existing = ((name, topics.topic(name)) for name in names)
    return {name: len(topic.partitions) for name, topic in existing if topic is not None}


def _change(state: GroupState, group_id: str, change: Callable[[StreamsGroup], None]) -> None:
    group = state.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        change(group)


def _start_delay(state: GroupState, group_id: str, deadline_ms: int) -> None:
    state.timers.set(initial_delay_key(group_id), deadline_ms, partial(delay_over, state, group_id))


def delay_over(state: GroupState, group_id: str, now_ms: int) -> GroupResult:
    """Makes the first target assignment, for all members that have joined meanwhile."""
    result: GroupResult = Result()
    group = state.groups.get(group_id)
    if (
        isinstance(group, StreamsGroup)
        and group.members
        and group.configured is not None
        and group.epoch > group.assignment_epoch
    ):
        StreamsUpdate(state, group, result, now_ms).assign(group.members, group.epoch, group.configured)
    return result
