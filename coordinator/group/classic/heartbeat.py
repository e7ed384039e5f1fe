"""Heartbeat of a classic group: keeps a member's session, and tells it if its group rebalances.

Source: GroupMetadataManager.classicGroupHeartbeat.
"""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rebalance import keep_session
from coordinator.group.classic.rendezvous import EMPTY, PREPARING_REBALANCE
from coordinator.group.records import GroupOutcome
from coordinator.group.state import Client, GroupState
from coordinator.outcome import Outcome, Reply, Ticket
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    state: GroupState,
    group: ClassicGroup,
    request: HeartbeatRequest,
    client: Client,
    ticket: Ticket[HeartbeatResponse],
    now_ms: int,
) -> GroupOutcome:
    """Answers a heartbeat. Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is EMPTY:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    keep_session(state, group, group.members[request.member_id], now_ms)
    rebalances = group.state is PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE
    return Outcome((), (Reply(ticket, HeartbeatResponse(error_code=code)),))
