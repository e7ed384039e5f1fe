"""LeaveGroup of a classic group: removes one or more members, by member id or by instance id.

Source: GroupMetadataManager.classicGroupLeave (KIP-345 for several members, KIP-800 for reasons).
"""

from __future__ import annotations

from coordinator.engine.result import Result, Ticket
from coordinator.group.classic.group import ClassicGroup, session_key
from coordinator.group.classic.rebalance import changed, prepare_or_complete, remove_member
from coordinator.group.classic.rendezvous import EMPTY
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse


def leave(
    state: GroupState,
    group: ClassicGroup,
    request: LeaveGroupRequest,
    client: Client,
    ticket: Ticket[LeaveGroupResponse],
    now_ms: int,
) -> GroupResult:
    """Removes members, with an answer for each; the remaining members rebalance."""
    result: GroupResult = Result()
    group = changed(state, group, result)
    results = [_leave_one(state, group, identity, result) for identity in request.members]
    result.answer(ticket, LeaveGroupResponse(error_code=0, members=results))
    gone = [result.member_id or result.group_instance_id or "" for result in results if not result.error_code]
    if gone and group.state is not EMPTY:
        prepare_or_complete(state, group, result, now_ms, f"{', '.join(gone)} left")
    return result


def _leave_one(state: GroupState, group: ClassicGroup, identity: MemberIdentity, result: GroupResult) -> MemberResponse:
    code = ErrorCode.NONE
    try:
        member_id = _member_id(group, identity)
        if member_id in group.pending_joins:
            result.effect(state.timers.cancel, session_key(group.group_id, member_id))
            group.remove(member_id)
        else:
            remove_member(state, group, group.members[member_id], result)
        reason = identity.reason or "not provided"
        result.effect(state.note, "member left", group=group.group_id, member=member_id, reason=reason)
    except KafkaError as error:
        code = error.code
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)


def _member_id(group: ClassicGroup, identity: MemberIdentity) -> str:
    """Returns the requested member id; administrators know static members only by their instance ids."""
    if not identity.member_id:
        owner = group.static_members.get(identity.group_instance_id or "")
        if owner is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return owner
    if identity.member_id not in group.pending_joins:
        group.check_member(identity.member_id, identity.group_instance_id)
    return identity.member_id
