"""StreamsGroupHeartbeat: a member joins, changes, stays or leaves, and gets its tasks.

Source: GroupMetadataManager.streamsGroupHeartbeat and streamsGroupLeave (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from coordinator.engine.result import Result, Ticket
from coordinator.group.config import GroupConfig
from coordinator.group.modern.group import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from coordinator.group.modern.static_members import (
    dynamic_member,
    has_left_for_a_while,
    static_member,
)
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from coordinator.group.streams import records
from coordinator.group.streams.configured import ConfiguredTopology
from coordinator.group.streams.endpoints import endpoint_to_partitions
from coordinator.group.streams.fencing import fence, keep_session
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.member import StreamsMember, UserEndpoint
from coordinator.group.streams.migration import find_or_make
from coordinator.group.streams.owned import NOTHING_OWNED, is_within
from coordinator.group.streams.reconciliation import Claimed
from coordinator.group.streams.requests import check
from coordinator.group.streams.status import GroupStatus, StatusCode
from coordinator.group.streams.task_offsets import reported
from coordinator.group.streams.tasks import TaskAssignment, Tasks
from coordinator.group.streams.topology import Topology
from coordinator.group.streams.update import StreamsUpdate, partition_counts
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import streams_group_heartbeat as messages
from protocol.messages.create_topics import CreatableTopic
from protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)

FIRST_VERSION_WITH_TAGS_STATUS = 1
"""First version whose clients understand MISSING_CLIENT_TAGS."""


class StreamsHeartbeatResult(NamedTuple):
    """The answer to a heartbeat, and the internal topics to create after it."""

    response: StreamsGroupHeartbeatResponse
    missing: Mapping[str, CreatableTopic] = {}


def heartbeat(
    state: GroupState,
    request: StreamsGroupHeartbeatRequest,
    client: Client,
    ticket: Ticket[StreamsHeartbeatResult],
    now_ms: int,
) -> GroupResult:
    """Answers a heartbeat. Raises KafkaError: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY, GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID."""
    check(request)
    result: GroupResult = Result()
    if request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
        result.answer(ticket, _leave(state, request, result, now_ms))
    else:
        result.answer(ticket, _stay(state, request, client, result, now_ms))
    return result


def _stay(
    state: GroupState, request: StreamsGroupHeartbeatRequest, client: Client, result: GroupResult, now_ms: int
) -> StreamsHeartbeatResult:
    group = find_or_make(state, request.group_id, result, joining=request.member_epoch == JOINING)
    if request.member_epoch == JOINING:
        group.check_room_for(request.member_id, request.instance_id, state.settings.group_streams_max_size)
    requested = None if request.topology is None else Topology.from_request(request.topology)
    claimed = _claimed(request)
    before = _member(group, request, claimed, result)
    after = _changed(before, request, client)
    update = StreamsUpdate(state, group, result, now_ms)
    bump = update.describe(before, after, is_static=request.instance_id is not None)
    epoch, configured = update.configure(update.topology(after, requested), bump=bump)
    _check_tasks(request, configured)
    _note_reports(update, request, configured)
    after = update.move(after, update.assign_to(after, epoch, configured), claimed)
    result.effect(keep_session, state, group.group_id, after.member_id, now_ms)
    response = _response(update, request, before, after, claimed)
    _tell_endpoints(update, request, before, after, configured, response)
    response.status = [status.written() for status in _statuses(update, request, after, configured, client.version)]
    return StreamsHeartbeatResult(response, configured.missing)


def _claimed(request: StreamsGroupHeartbeatRequest) -> Claimed:
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TaskAssignment(Tasks.from_ids(active), Tasks.from_ids(standby), Tasks.from_ids(warmup))


def _member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, claimed: Claimed, result: GroupResult
) -> StreamsMember:
    """Returns the member before this heartbeat."""
    joining = request.member_epoch == JOINING
    if request.instance_id is None:
        member = dynamic_member(group, request.member_id, StreamsMember, joining=joining)
    else:
        member = static_member(
            group,
            request.member_id,
            request.instance_id,
            result,
            StreamsMember,
            has_left_for_a_while,
            joining=joining,
        )
    may_be_previous = claimed is not None and is_within(claimed, member.assigned)
    group.check_epoch(member, request.member_epoch, may_be_previous=may_be_previous)
    return member


def _changed(member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client) -> StreamsMember:
    """Returns the member as the request describes it; missing fields stay as they are, except the endpoint of a member
    that joins."""
    timeout_ms, topology, tags = request.rebalance_timeout_ms, request.topology, request.client_tags
    endpoint = None if request.member_epoch == JOINING else member.endpoint
    if request.user_endpoint is not None:
        endpoint = UserEndpoint(request.user_endpoint.host, request.user_endpoint.port)
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        client_id=client.client_id,
        client_host=client.host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags if tags is None else {tag.key: tag.value for tag in tags},
        endpoint=endpoint,
    )


def _check_tasks(request: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology) -> None:
    """Raises INVALID_REQUEST if the member owns tasks that the topology doesn't have."""
    if not configured.is_ready or configured.subtopologies is None:
        return
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for entry in tasks or ():
            subtopology = configured.subtopologies.get(entry.subtopology_id)
            if subtopology is None:
                raise _invalid(f"Subtopology {entry.subtopology_id} does not exist in the topology.")
            for partition in entry.partitions:
                if not 0 <= partition < subtopology.task_count:
                    raise _invalid(
                        f"Task {partition} for subtopology {entry.subtopology_id} is invalid. "
                        f"Number of tasks for this subtopology: {subtopology.task_count}"
                    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _note_reports(update: StreamsUpdate, request: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology) -> None:
    """Remembers the offsets that the member reports, and its request to shut the application down."""
    member_id = request.member_id
    if request.task_offsets is not None or request.task_end_offsets is not None:
        offsets = reported(update.group.offsets_of(member_id), request, configured)
        update.later(lambda group: group.note_task_offsets(member_id, offsets))
    if request.shutdown_application:
        update.later(partial(StreamsGroup.note_shutdown, member_id=member_id))


def _response(
    update: StreamsUpdate,
    request: StreamsGroupHeartbeatRequest,
    before: StreamsMember,
    after: StreamsMember,
    claimed: Claimed,
) -> StreamsGroupHeartbeatResponse:
    config = update.config
    response = StreamsGroupHeartbeatResponse(
        error_code=0,
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=config.streams_heartbeat_interval_ms,
        task_offset_interval_ms=config.streams_task_offset_interval_ms,
        acceptable_recovery_lag=config.streams_acceptable_recovery_lag,
        status=[],
        endpoint_information_epoch=0,
    )
    tasks = after.assigned.assignment
    missed_answer = claimed is not None and claimed != tasks
    if request.member_epoch == JOINING or after.assigned != before.assigned or missed_answer:
        response.active_tasks = tasks.active.ids(TaskIds)
        response.standby_tasks = tasks.standby.ids(TaskIds)
        response.warmup_tasks = tasks.warmup.ids(TaskIds)
    return response


def _tell_endpoints(
    update: StreamsUpdate,
    request: StreamsGroupHeartbeatRequest,
    before: StreamsMember,
    after: StreamsMember,
    configured: ConfiguredTopology,
    response: StreamsGroupHeartbeatResponse,
) -> None:
    """Adds all endpoints and their partitions to the response if they have changed since the epoch that the member
    knows. As in Kafka, the epoch of a group that is new stays 0."""
    group = update.group
    is_new = group.group_id not in update.state.groups
    epoch = group.endpoint_epoch
    if after.endpoint != before.endpoint or (after.assigned != before.assigned and after.endpoint is not None):
        epoch += 1
        if not is_new:
            update.later(partial(StreamsGroup.note_endpoints, epoch=epoch))
    if epoch != request.endpoint_information_epoch:
        members, _replaced = group.members_with(after)
        response.partitions_by_user_endpoint = list(_endpoints(update, members.values(), configured))
    response.endpoint_information_epoch = 0 if is_new else epoch


def _endpoints(
    update: StreamsUpdate, members: Iterable[StreamsMember], configured: ConfiguredTopology
) -> Iterable[EndpointToPartitions]:
    subtopologies = configured.subtopologies or {}
    inputs = {topic for subtopology in subtopologies.values() for topic in subtopology.inputs}
    counts = partition_counts(update.state.environment.topics, inputs)
    for member in members:
        if member.endpoint is not None:
            endpoint = messages.Endpoint(host=member.endpoint.host, port=member.endpoint.port)
            yield endpoint_to_partitions(endpoint, member.assigned.assignment, subtopologies, counts)


def _statuses(
    update: StreamsUpdate,
    request: StreamsGroupHeartbeatRequest,
    member: StreamsMember,
    configured: ConfiguredTopology,
    version: int,
) -> Iterable[GroupStatus]:
    yield from update.statuses
    if configured.problem is not None:
        yield configured.problem
    shutdown_by = update.group.shutdown_by or (member.member_id if request.shutdown_application else None)
    if shutdown_by is not None:
        yield GroupStatus(
            StatusCode.SHUTDOWN_APPLICATION,
            f"Streams group member {shutdown_by} encountered a fatal error and requested a shutdown for the entire "
            "application.",
        )
    missing = _missing_tags(update.config, member)
    if missing and version >= FIRST_VERSION_WITH_TAGS_STATUS:
        yield GroupStatus(
            StatusCode.MISSING_CLIENT_TAGS,
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them "
            "via 'client.tag.<tagKey>' in your Streams config.",
        )


def _missing_tags(config: GroupConfig, member: StreamsMember) -> list[str]:
    return [tag for tag in config.streams_rack_aware_assignment_tags if tag not in member.client_tags]


def _leave(
    state: GroupState, request: StreamsGroupHeartbeatRequest, result: GroupResult, now_ms: int
) -> StreamsHeartbeatResult:
    group = state.group_of(request.group_id, StreamsGroup)
    member = group.present(request.member_id, request.instance_id)
    if request.shutdown_application:
        StreamsUpdate(state, group, result, now_ms).later(
            partial(StreamsGroup.note_shutdown, member_id=request.member_id)
        )
    if request.instance_id is not None and request.member_epoch == LEAVING_FOR_A_WHILE:
        result.records.append(records.COMMON.current(group.group_id, _away(member)))
    else:
        fence(state, group, member, result, now_ms)
    return StreamsHeartbeatResult(
        StreamsGroupHeartbeatResponse(
            error_code=0,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=0,
            task_offset_interval_ms=0,
            status=[],
            endpoint_information_epoch=0,
        )
    )


def _away(member: StreamsMember) -> StreamsMember:
    """Returns a static member that has left for a while. The member that replaces it may commit with any epoch."""
    return member._replace(
        member_epoch=LEAVING_FOR_A_WHILE, pending_revocation=NOTHING_OWNED, assigned=member.assigned.at_epoch(0)
    )
