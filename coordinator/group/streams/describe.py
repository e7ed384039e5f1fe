"""StreamsGroupDescribe: groups with their topology, and their members with their current and target tasks.

Source: GroupMetadataManager.streamsGroupDescribe and StreamsGroup.asDescribedGroup (KIP-1071, KIP-1357).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.engine.result import Reply, Result, Ticket
from coordinator.group.config import STREAMS_ASSIGNORS
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.tasks import TaskAssignment, TaskId
from protocol.errors import KafkaError
from protocol.messages import streams_group_describe as messages


def describe(
    state: GroupState, group_id: str, client: Client, ticket: Ticket[messages.DescribedGroup], now_ms: int
) -> GroupResult:
    """Describes a group, once all decisions about it are committed."""
    return Result((), (Reply(ticket, described(state, group_id)),))


def described(state: GroupState, group_id: str) -> messages.DescribedGroup:
    """Returns the description of a group; with GROUP_ID_NOT_FOUND if it doesn't exist or is of another type."""
    try:
        group = state.group_of(group_id, StreamsGroup)
    except KafkaError as error:
        return undescribed(group_id, error)
    return messages.DescribedGroup(
        error_code=0,
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(group, member) for member in group.members.values()],
        assignor_name=assignor_of(state, group_id),
    )


def undescribed(group_id: str, error: KafkaError) -> messages.DescribedGroup:
    """Returns the answer for a group that can't be described, with the error."""
    return messages.DescribedGroup(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


def assignor_of(state: GroupState, group_id: str) -> str:
    """Returns the name of the assignor of the group's next target assignment."""
    return state.environment.group_config(group_id).streams_assignor_name or STREAMS_ASSIGNORS[0]


def _topology(group: StreamsGroup) -> messages.Topology | None:
    if group.configured is not None and group.configured.is_ready:
        return group.configured.described()
    return None if group.topology is None else group.topology.described()


def _member(group: StreamsGroup, member: StreamsMember) -> messages.Member:
    endpoint, offsets = member.endpoint, group.offsets_of(member.member_id)
    return messages.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else messages.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[messages.KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        task_offsets=_offsets(offsets.offsets),
        task_end_offsets=_offsets(offsets.end_offsets),
        assignment=_assignment(member.assigned.assignment),
        target_assignment=_assignment(group.target(member.member_id)),
        is_classic=False,
    )


def _offsets(offsets: Mapping[TaskId, int]) -> list[messages.TaskOffset]:
    return [
        messages.TaskOffset(subtopology_id=task.subtopology_id, partition=task.partition, offset=offset)
        for task, offset in sorted(offsets.items())
    ]


def _assignment(tasks: TaskAssignment) -> messages.Assignment:
    return messages.Assignment(
        active_tasks=tasks.active.ids(messages.TaskIds),
        standby_tasks=tasks.standby.ids(messages.TaskIds),
        warmup_tasks=tasks.warmup.ids(messages.TaskIds),
    )
