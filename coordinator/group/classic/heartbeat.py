"""Heartbeat of a classic group: extends the member's session, and tells the member if its group rebalances.

Source: GroupMetadataManager.classicGroupHeartbeat.
"""

from __future__ import annotations

from functools import partial

from coordinator.engine.result import Reply, Result, Ticket
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rebalance import watch
from coordinator.group.classic.rendezvous import EMPTY, PREPARING_REBALANCE
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    state: GroupState,
    group: ClassicGroup,
    request: HeartbeatRequest,
    client: Client,
    ticket: Ticket[HeartbeatResponse],
    now_ms: int,
) -> GroupResult:
    """Answers a heartbeat. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    deadline_ms = now_ms + group.members[request.member_id].session_timeout_ms
    keep_session = partial(watch, state, group.group_id, request.member_id, deadline_ms)
    rebalances = group.state is PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE
    return Result((), (Reply(ticket, HeartbeatResponse(error_code=code)),), (keep_session,))
