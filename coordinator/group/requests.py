"""Requests of the classic protocol, which are passed to the protocol of their group.

A consumer group may have members that still use the classic protocol (KIP-848), so each table has a row for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.engine.result import Ticket, answered
from coordinator.group.classic import heartbeat as classic_heartbeat
from coordinator.group.classic import join as classic_join
from coordinator.group.classic import leave as classic_leave
from coordinator.group.classic import sync as classic_sync
from coordinator.group.classic.rebalance import join_refused
from coordinator.group.consumer import classic_members as consumer_classic
from coordinator.group.group import Group, GroupType
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Handle = Callable[[GroupState, Any, Any, Client, Any, int], GroupResult]
"""(state, group, request, client, ticket, now_ms) → Result."""

JOIN: Mapping[GroupType, Handle] = {GroupType.CONSUMER: consumer_classic.join}
"""The types of groups, besides classic groups, that a classic member may join although they have members."""

SYNC: Mapping[GroupType, Handle] = {GroupType.CLASSIC: classic_sync.sync, GroupType.CONSUMER: consumer_classic.sync}
HEARTBEAT: Mapping[GroupType, Handle] = {
    GroupType.CLASSIC: classic_heartbeat.heartbeat,
    GroupType.CONSUMER: consumer_classic.heartbeat,
}
LEAVE: Mapping[GroupType, Handle] = {GroupType.CLASSIC: classic_leave.leave, GroupType.CONSUMER: consumer_classic.leave}

CONVERTIBLE = frozenset({GroupType.CONSUMER, GroupType.STREAMS})
"""Types of groups that become classic if a classic member joins them while they are empty."""


def join_group(
    state: GroupState, request: JoinGroupRequest, client: Client, ticket: Ticket[JoinGroupResponse], now_ms: int
) -> GroupResult:
    """Decides a JoinGroup in the protocol of its group."""
    group = state.groups.get(request.group_id)
    if group is None or group.type is GroupType.CLASSIC or (group.is_empty and group.type in CONVERTIBLE):
        return classic_join.join(state, request, client, ticket, now_ms)
    handle = JOIN.get(group.type)
    if handle is None:
        return answered(ticket, join_refused("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    return handle(state, group, request, client, ticket, now_ms)


def sync_group(
    state: GroupState, request: SyncGroupRequest, client: Client, ticket: Ticket[SyncGroupResponse], now_ms: int
) -> GroupResult:
    """Decides a SyncGroup in the protocol of its group. Raises KafkaError."""
    group, handle = _handler(state, SYNC, request.group_id)
    if group.is_empty:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return handle(state, group, request, client, ticket, now_ms)


def heartbeat(
    state: GroupState, request: HeartbeatRequest, client: Client, ticket: Ticket[HeartbeatResponse], now_ms: int
) -> GroupResult:
    """Decides a Heartbeat in the protocol of its group. Raises KafkaError."""
    group, handle = _handler(state, HEARTBEAT, request.group_id)
    return handle(state, group, request, client, ticket, now_ms)


def leave_group(
    state: GroupState, request: LeaveGroupRequest, client: Client, ticket: Ticket[LeaveGroupResponse], now_ms: int
) -> GroupResult:
    """Decides a LeaveGroup in the protocol of its group. Raises KafkaError."""
    group, handle = _handler(state, LEAVE, request.group_id)
    return handle(state, group, request, client, ticket, now_ms)


def _handler(state: GroupState, table: Mapping[GroupType, Handle], group_id: str) -> tuple[Group, Handle]:
    """Returns the group and the function for its protocol. Raises UNKNOWN_MEMBER_ID for a group without classic
    members."""
    group = state.groups.get(group_id)
    handle = None if group is None else table.get(group.type)
    if group is None or handle is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    return group, handle
