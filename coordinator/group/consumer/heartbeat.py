"""ConsumerGroupHeartbeat: a member joins, changes, stays or leaves, and gets its assignment.

Source: GroupMetadataManager.consumerGroupHeartbeat and consumerGroupLeave (KIP-848).
"""

from __future__ import annotations

from coordinator.engine.result import Result, Ticket
from coordinator.group.assignors.builtin import configured
from coordinator.group.consumer import records
from coordinator.group.consumer.fencing import fence, keep_session
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.group_update import GroupUpdate
from coordinator.group.consumer.member import (
    NO_PARTITIONS,
    Member,
    Owned,
    without_epochs,
)
from coordinator.group.consumer.membership import check_epoch, dynamic_member, static_member
from coordinator.group.consumer.reconciliation import Claimed
from coordinator.group.consumer.requests import check
from coordinator.group.consumer.upgrade import find_or_make
from coordinator.group.modern.group import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.types import uuid_to_text


def heartbeat(
    state: GroupState,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    ticket: Ticket[ConsumerGroupHeartbeatResponse],
    now_ms: int,
) -> GroupResult:
    """Answers a heartbeat. Raises KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
    INVALID_REGULAR_EXPRESSION."""
    check(request, client.version, configured(state.settings.group_consumer_assignors))
    result: GroupResult = Result()
    if request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
        result.answer(ticket, _leave(state, request, result, now_ms))
    else:
        result.answer(ticket, _stay(state, request, client, result, now_ms))
    return result


def _stay(
    state: GroupState, request: ConsumerGroupHeartbeatRequest, client: Client, result: GroupResult, now_ms: int
) -> ConsumerGroupHeartbeatResponse:
    joining = request.member_epoch == JOINING
    group = find_or_make(state, request.group_id, result, joining=joining, now_ms=now_ms)
    group.check_room_for(request.member_id, request.instance_id, state.settings.group_consumer_max_size)
    claimed = _claimed(request)
    before = _member(state, group, request, claimed, result)
    after = GroupUpdate(state, group, client, result, now_ms).settle(before, _changed(before, request, client), claimed)
    result.effect(keep_session, state, group.group_id, after, now_ms)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and claimed is not None
    )
    tells = joining or is_full or after.assigned != before.assigned
    return ConsumerGroupHeartbeatResponse(
        error_code=0,
        member_id=after.member_id,
        member_epoch=after.member_epoch,
        heartbeat_interval_ms=state.environment.group_config(group.group_id).consumer_heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if tells else None,
    )


def _claimed(request: ConsumerGroupHeartbeatRequest) -> Claimed:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in request.topic_partitions}


def _member(
    state: GroupState,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    claimed: Claimed,
    result: GroupResult,
) -> Member:
    """Returns the member before this heartbeat."""
    joining = request.member_epoch == JOINING
    member_id = request.member_id or uuid_to_text(state.environment.new_uuid())
    if request.instance_id is None:
        member = dynamic_member(group, member_id, joining=joining)
    else:
        member = static_member(group, member_id, request.instance_id, result, joining=joining, classic=False)
    check_epoch(group, member, request.member_epoch, claimed)
    return member


def _changed(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """Returns the member as the request describes it; missing fields stay as they are."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )


def _assignment(assigned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in without_epochs(assigned).items()
        ]
    )


def _leave(
    state: GroupState, request: ConsumerGroupHeartbeatRequest, result: GroupResult, now_ms: int
) -> ConsumerGroupHeartbeatResponse:
    group = state.group_of(request.group_id, ConsumerGroup)
    member = group.present(request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == LEAVING_FOR_A_WHILE:
        result.records.append(records.COMMON.current(group.group_id, _away(member)))
    else:
        fence(state, group, [member], result, now_ms)
    return ConsumerGroupHeartbeatResponse(
        error_code=0, member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
    )


def _away(member: Member) -> Member:
    """Returns a static member that has left for a while. The member that replaces it may commit with any epoch."""
    assigned = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    return member._replace(member_epoch=LEAVING_FOR_A_WHILE, pending_revocation=NO_PARTITIONS, assigned=assigned)
