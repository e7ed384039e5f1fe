"""ShareGroupHeartbeat: a member joins, changes, stays or leaves, and gets its assignment.

Source: GroupMetadataManager.shareGroupHeartbeat and shareGroupLeave, GroupCoordinatorService (KIP-932).
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.engine.result import Ticket
from coordinator.group.assignment import NOTHING, Assignment
from coordinator.group.assignors.simple import Subscriber, assign
from coordinator.group.consumer.requests import is_blank
from coordinator.group.draft import Draft
from coordinator.group.modern.group import Checked, note_check
from coordinator.group.modern.records import changed_targets
from coordinator.group.modern.topic_ids import TopicIds
from coordinator.group.records import GroupResult
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.initialization import Initialize, initialize, is_assignment_pending, missing
from coordinator.group.share.member import JOINING, LEAVING, ShareMember
from coordinator.group.share.sessions import fence, keep_session
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
    draft = Draft()
    if request.member_epoch == LEAVING:
        draft.answer(ticket, _leave(state, request, draft))
    else:
        draft.answer(ticket, _stay(state, request, client, draft, now_ms))
    return draft.result()


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST."""
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        _require(value is None or not is_blank(value), f"{name} can't be empty.")
    if request.member_epoch == JOINING:
        _require(bool(request.subscribed_topic_names), "SubscribedTopicNames must be set in first request.")
    else:
        _require(request.member_epoch >= LEAVING, "MemberEpoch is invalid.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _leave(state: GroupState, request: ShareGroupHeartbeatRequest, draft: Draft) -> HeartbeatResult:
    group = state.group_of(request.group_id, ShareGroup)
    fence(state, group, group.member(request.member_id), draft)
    return HeartbeatResult(
        ShareGroupHeartbeatResponse(
            error_code=0, member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
        )
    )


def _stay(
    state: GroupState, request: ShareGroupHeartbeatRequest, client: Client, draft: Draft, now_ms: int
) -> HeartbeatResult:
    joining = request.member_epoch == JOINING
    group = _group(state, request.group_id, joining=joining)
    _check_room(group, request.member_id, state.settings.group_share_max_size)
    present = group.members.get(request.member_id)
    before = ShareMember(request.member_id) if present is None and joining else group.member(request.member_id)
    _check_epoch(before, request.member_epoch)
    names = request.subscribed_topic_names
    after = before._replace(
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        topic_names=before.topic_names if names is None else frozenset(names),
        client_id=client.client_id,
        client_host=client.host,
    )
    epoch, bumped = _epoch(state, group, before, after, draft)
    moved = _move(state, group, after, epoch, bumped, draft, now_ms)
    draft.effect(keep_session, state, group.group_id, moved.member_id, now_ms)
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
    return HeartbeatResult(response, initialize(state, group, epoch, topics, draft, now_ms), due_ms)


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


def _check_room(group: ShareGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The share group has reached its maximum capacity of {max_size} members."
        )


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raises FENCED_MEMBER_EPOCH unless the member has its present epoch, or its previous one."""
    if epoch in (JOINING, member.member_epoch):
        return
    if epoch > member.member_epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch != member.previous_member_epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.member_epoch}), and it does not match the previous member epoch "
            f"({member.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
        )


def _epoch(
    state: GroupState, group: ShareGroup, before: ShareMember, after: ShareMember, draft: Draft
) -> tuple[int, bool]:
    """Returns the group's epoch after the decision, and True if it is new."""
    if after != before or after.member_id not in group.members:
        draft.records.append(records.member(group.group_id, after))
    bump = after.topic_names != before.topic_names
    if group.assignment_epoch >= group.epoch:
        bump = bump or is_assignment_pending(group)
    watch = state.watch
    if not bump and group.checked.changes == watch.changes and group.epoch >= group.checked.group_epoch:
        return group.epoch, False
    metadata_hash = watch.group_hash(group.subscriptions_with(before, after))
    bump = bump or metadata_hash != group.metadata_hash
    epoch = group.epoch + bump
    if bump:
        draft.records.append(records.COMMON.epoch(group.group_id, epoch, metadata_hash))
    draft.effect(note_check, state, group.group_id, Checked(watch.changes, epoch))
    return epoch, bump


def _move(
    state: GroupState,
    group: ShareGroup,
    member: ShareMember,
    epoch: int,
    subscription_changed: bool,
    draft: Draft,
    now_ms: int,
) -> ShareMember:
    """Returns the member at the target assignment: at a new one if the epoch needs it and the last is old enough."""
    target_epoch, target = group.assignment_epoch, group.target(member.member_id)
    if group.assignment_epoch < epoch and _may_assign(state, group, now_ms):
        target_epoch, target = epoch, _assign(state, group, member, epoch, draft, now_ms)
    if not subscription_changed and member.member_epoch == target_epoch:
        return member
    topics = TopicIds(state.environment.topics).of(member.topic_names)
    assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in topics}
    moved = member._replace(assigned=assigned)
    if member.member_epoch != target_epoch:
        moved = moved._replace(member_epoch=target_epoch, previous_member_epoch=member.member_epoch)
    if moved != member:
        draft.records.append(records.current(group.group_id, moved))
    return moved


def _may_assign(state: GroupState, group: ShareGroup, now_ms: int) -> bool:
    """True if the assignment interval is over, or this is the first state of a group's topics, which is assigned at
    once."""
    interval_ms = state.environment.group_config(group.group_id).share_assignment_interval_ms
    if not group.assigned_at_ms or not interval_ms or now_ms >= group.assigned_at_ms + interval_ms:
        return True
    return not any(group.targets.values()) and is_assignment_pending(group)


def _assign(
    state: GroupState, group: ShareGroup, changed: ShareMember, epoch: int, draft: Draft, now_ms: int
) -> Assignment:
    """Makes a new target assignment; returns the changed member's target."""
    ids = TopicIds(state.environment.topics)
    members = {**group.members, changed.member_id: changed}
    subscribers = {
        member_id: Subscriber(ids.of(member.topic_names), group.target(member_id))
        for member_id, member in members.items()
    }
    alike = len({member.topic_names for member in members.values()}) == 1
    targets = assign(subscribers, group.topics.partitions, alike=alike)
    for member_id, target in changed_targets(group.targets, targets).items():
        draft.records.append(records.target(group.group_id, member_id, target))
    draft.records.append(records.COMMON.target_epoch(group.group_id, epoch, now_ms))
    return targets.get(changed.member_id, NOTHING)


def _assignment(assigned: Assignment) -> messages.Assignment:
    return messages.Assignment(
        topic_partitions=[
            messages.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
