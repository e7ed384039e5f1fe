"""SyncGroup of a classic group: the leader sends the assignments, and every member gets its own.

The assignments are written before any member gets them. Source: GroupMetadataManager.classicGroupSync.
"""

from __future__ import annotations

from coordinator.engine.result import Result, Ticket
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import NO_ASSIGNMENT
from coordinator.group.classic.rebalance import (
    answer_sync,
    changed,
    keep_session,
    prepare,
    settle,
    stop_waiting_for_syncs,
)
from coordinator.group.classic.records import assigned
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

MEMBER_OVERHEAD_BYTES = 100
"""Upper bound of the bytes of a member's timeouts and lengths in the group's record."""


def sync(
    state: GroupState,
    group: ClassicGroup,
    request: SyncGroupRequest,
    client: Client,
    ticket: Ticket[SyncGroupResponse],
    now_ms: int,
) -> GroupResult:
    """Stores a leader's assignments, or answers a member with its own. Raises KafkaError with the error of the
    answer."""
    result: GroupResult = Result()
    _check(group, request)
    if group.state is PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    group = changed(state, group, result)
    member = group.edit(request.member_id)
    _no_longer_pending(state, group, request.member_id, result)
    if group.state is STABLE:
        result.answer(ticket, _assignment(group, member.assignment))
    else:
        assert group.state is COMPLETING_REBALANCE
        answer_sync(member, result, _refused(ErrorCode.REBALANCE_IN_PROGRESS))  # its client has cancelled that one
        member.sync_ticket = ticket
        if group.is_leader(member.member_id):
            given = {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments}
            _assign(state, group, given, result, now_ms)
    return result


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    for claimed, expected in ((request.protocol_type, group.protocol), (request.protocol_name, group.strategy)):
        if claimed is not None and expected is not None and claimed != expected:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _assign(state: GroupState, group: ClassicGroup, given: dict[str, bytes], result: GroupResult, now_ms: int) -> None:
    """Writes the assignments and answers the waiting members; the group is stable when the record is applied."""
    missing = [member_id for member_id in group.members if member_id not in given]
    if missing:
        result.effect(
            state.note, "members without assignment", group=group.group_id, generation=group.generation, members=missing
        )
    if _record_size(group, given) > state.settings.max_record_bytes:
        _refuse_all(state, group, result, now_ms)
        return
    result.records.append(assigned(group, given))
    result.effect(settle, state, group.group_id)
    for member_id in group.members:
        answer = _assignment(group, given.get(member_id, NO_ASSIGNMENT))
        member = group.edit(member_id)
        if answer_sync(member, result, answer):
            keep_session(state, group, member, result, now_ms)


def _record_size(group: ClassicGroup, given: dict[str, bytes]) -> int:
    """Returns an upper bound of the bytes of the group's record."""
    size = len(group.group_id)
    strategy = group.strategy or ""
    for member in group.members.values():
        size += len(member.metadata(strategy)) + len(given.get(member.member_id, NO_ASSIGNMENT))
        size += len(member.member_id) + len(member.client_id) + len(member.client_host) + MEMBER_OVERHEAD_BYTES
    return size


def _refuse_all(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    """Rejects the assignments, which are too large for a record, and begins another generation."""
    for member_id in group.members:
        answer_sync(group.edit(member_id), result, _refused(ErrorCode.UNKNOWN_SERVER_ERROR))
    prepare(state, group, result, now_ms, "the assignments are too large for a record")


def _assignment(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=0, protocol_type=group.protocol, protocol_name=group.strategy, assignment=assignment
    )


def _refused(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=NO_ASSIGNMENT)


def _no_longer_pending(state: GroupState, group: ClassicGroup, member_id: str, result: GroupResult) -> None:
    group.pending_syncs.pop(member_id, None)
    if not group.pending_syncs:
        stop_waiting_for_syncs(state, group, result)
