"""ShareGroupHeartbeat: a member joins, changes, stays or leaves, and gets its assignment.

Source: GroupMetadataManager.shareGroupHeartbeat and shareGroupLeave, GroupCoordinatorService (KIP-932).
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.engine.result import Result, Ticket
from coordinator.group.assignment import Assignment
from coordinator.group.modern.group import JOINING, LEAVING
from coordinator.group.modern.requests import check_topic_names, not_empty, require
from coordinator.group.records import GroupResult
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.initialization import Initialize, initialize, missing
from coordinator.group.share.member import ShareMember
from coordinator.group.share.sessions import fence, keep_session
from coordinator.group.share.update import ShareUpdate
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import share_group_heartbeat as messages
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


class HeartbeatResult(NamedTuple):
    """The answer to a heartbeat, and the share group state to initialize after it."""

    response: ShareGroupHeartbeatResponse
    initialize: Initialize | None = None
    due_ms: int | None = None
    """The time when the target assignment that the member waits for may be made."""


def heartbeat(
    state: GroupState, request: ShareGroupHeartbeatRequest, client: Client, ticket: Ticket[HeartbeatResult], now_ms: int
) -> GroupResult:
    """Answers a heartbeat. Raises KafkaError: INVALID_REQUEST, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED,
    UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""
    check(request)
    result: GroupResult = Result()
    if request.member_epoch == LEAVING:
        result.answer(ticket, _leave(state, request, result, now_ms))
    else:
        result.answer(ticket, _stay(state, request, client, result, now_ms))
    return result


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST."""
    not_empty(request.member_id, "MemberId")
    not_empty(request.group_id, "GroupId")
    not_empty(request.rack_id, "RackId")
    check_topic_names(request.subscribed_topic_names)
    if request.member_epoch == JOINING:
        require(bool(request.subscribed_topic_names), "SubscribedTopicNames must be set in first request.")
    else:
        require(request.member_epoch >= LEAVING, "MemberEpoch is invalid.")


def _leave(state: GroupState, request: ShareGroupHeartbeatRequest, result: GroupResult, now_ms: int) -> HeartbeatResult:
    group = state.group_of(request.group_id, ShareGroup)
    fence(state, group, group.member(request.member_id), result, now_ms)
    return HeartbeatResult(
        ShareGroupHeartbeatResponse(
            error_code=0, member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
        )
    )


def _stay(
    state: GroupState, request: ShareGroupHeartbeatRequest, client: Client, result: GroupResult, now_ms: int
) -> HeartbeatResult:
    joining = request.member_epoch == JOINING
    group = _group(state, request.group_id, joining=joining)
    group.check_room(request.member_id, state.settings.group_share_max_size)
    present = group.members.get(request.member_id)
    before = ShareMember(request.member_id) if present is None and joining else group.member(request.member_id)
    previous = f", and it does not match the previous member epoch ({before.previous_member_epoch})"
    group.check_epoch(before, request.member_epoch, mismatch=previous)
    names = request.subscribed_topic_names
    after = before._replace(
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        topic_names=before.topic_names if names is None else frozenset(names),
        client_id=client.client_id,
        client_host=client.host,
    )
    epoch, moved = ShareUpdate(state, group, result, now_ms).settle(before, after)
    result.effect(keep_session, state, group.group_id, moved.member_id, now_ms)
    config = state.environment.group_config(group.group_id)
    tells = joining or names is not None or moved.assigned != before.assigned
    response = ShareGroupHeartbeatResponse(
        error_code=0,
        member_id=moved.member_id,
        member_epoch=moved.member_epoch,
        heartbeat_interval_ms=config.share_heartbeat_interval_ms,
        assignment=_assignment(moved.assigned) if tells else None,
    )
    topics = missing(state, group, group.subscriptions_with(before, after), now_ms)
    due_ms = None if moved.member_epoch == epoch else group.assigned_at_ms + config.share_assignment_interval_ms
    return HeartbeatResult(response, initialize(state, group, epoch, topics, result, now_ms), due_ms)


def _group(state: GroupState, group_id: str, *, joining: bool) -> ShareGroup:
    """Returns the group, or a new one that this decision's records create. Raises GROUP_ID_NOT_FOUND."""
    if joining and group_id not in state.groups:
        return ShareGroup(group_id)
    group = state.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def _assignment(assigned: Assignment) -> messages.Assignment:
    return messages.Assignment(
        topic_partitions=[
            messages.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
