"""JoinGroup of a classic group, for new and returning members, and for static members with a new member id.

The answer may come at once (a member id to join with, or the unchanged generation), or when all members have joined.
Source: GroupMetadataManager.classicGroupJoin (KIP-394 for pending members, KIP-345 for static members, KIP-814 for
leaders that need not assign again).
"""

from __future__ import annotations

from coordinator.engine.result import Result, Ticket, answered
from coordinator.group.classic.group import ClassicGroup, session_key
from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.classic.rebalance import (
    answer_join,
    answer_sync,
    changed,
    complete_if_joined,
    join_refused,
    joined,
    keep_session,
    prepare,
    prepare_or_complete,
    settle,
    watch,
)
from coordinator.group.classic.records import as_is, created
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse

NEW_MEMBER_TIMEOUT_MS = 300_000
"""Session timeout of a new member that waits in a rebalance, and so can't send heartbeats. A client that is gone must
not block the group for ever (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS)."""

FIRST_PENDING_MEMBER_VERSION = 4  # KIP-394
FIRST_SKIP_ASSIGNMENT_VERSION = 9  # KIP-814
NO_REASON = "not provided"


class Joining:
    """The decision on one JoinGroup request."""

    __slots__ = ("client", "group", "now_ms", "request", "result", "state", "strategies", "ticket")

    def __init__(
        self,
        state: GroupState,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        ticket: Ticket[JoinGroupResponse],
        now_ms: int,
    ) -> None:
        self.state = state
        self.result: GroupResult = Result()
        self.group = changed(state, group, self.result)
        """The group as this decision changes it."""
        self.request = request
        self.client = client
        self.ticket = ticket
        self.now_ms = now_ms
        self.strategies = tuple(Strategy(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)

    def answer(self, response: JoinGroupResponse) -> None:
        self.result.answer(self.ticket, response)

    def refuse(self, code: ErrorCode, member_id: str = "") -> None:
        self.answer(join_refused(member_id, code))

    def reason(self, why: str) -> str:
        return f"{why}; client reason: {self.request.reason or NO_REASON}"

    def supported(self) -> bool:
        return self.group.supports(self.request.protocol_type, (name for name, _ in self.strategies))


def join(
    state: GroupState, request: JoinGroupRequest, client: Client, ticket: Ticket[JoinGroupResponse], now_ms: int
) -> GroupResult:
    """Adds a member to a group that is classic, or doesn't exist, or is empty and of another type, which is then
    replaced."""
    present = state.groups.get(request.group_id)
    if isinstance(present, ClassicGroup):
        return _join_group(Joining(state, present, request, client, ticket, now_ms))
    if request.member_id:
        return answered(ticket, join_refused(request.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
    joining = Joining(state, ClassicGroup(request.group_id, since_ms=now_ms), request, client, ticket, now_ms)
    joining.result.records += [*(present.tombstones() if present else ()), created(request.group_id, now_ms)]
    return _join_group(joining)


def _join_group(joining: Joining) -> GroupResult:
    state, group, request = joining.state, joining.group, joining.request
    if not _has_room(group, request.member_id, state.settings.group_max_size):
        group.remove(request.member_id)
        joining.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif not joining.supported():
        joining.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif request.member_id:
        _join_known(joining)
    else:
        _join_unknown(joining)
    return joining.result


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """True if the group has room for this member. During a rebalance, only members that have joined it count."""
    if group.state is EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.is_joining) or group.joining < max_size
    return member is not None or len(group.members) < max_size


# Without a member id.


def _join_unknown(joining: Joining) -> None:
    request, group = joining.request, joining.group
    instance_id = request.group_instance_id
    if instance_id is None:
        member_id = f"{joining.client.client_id}-{joining.state.new_member_uuid()}"
        if joining.client.version >= FIRST_PENDING_MEMBER_VERSION:
            _give_member_id(joining, member_id)
        else:
            _add(joining, member_id)
        return
    member_id = f"{instance_id}-{joining.state.new_member_uuid()}"
    replaced = group.static_members.get(instance_id)
    if replaced is None:
        _add(joining, member_id)
    else:
        _replace_static(joining, group.members[replaced], member_id)


def _give_member_id(joining: Joining, member_id: str) -> None:
    """Asks the client to join again with a member id, so that a client that never gets the id isn't a member
    (KIP-394)."""
    joining.group.pending_joins[member_id] = None
    deadline_ms = joining.now_ms + joining.request.session_timeout_ms
    joining.result.effect(watch, joining.state, joining.group.group_id, member_id, deadline_ms)
    joining.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)


def _add(joining: Joining, member_id: str) -> None:
    """Adds a new member, which waits for the rebalance that it causes."""
    request, group, state = joining.request, joining.group, joining.state
    member = ClassicMember(
        member_id,
        instance_id=request.group_instance_id,
        client_id=joining.client.client_id,
        client_host=joining.client.host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        strategies=joining.strategies,
    )
    member.is_new = True
    member.join_ticket = joining.ticket
    if group.state is PREPARING_REBALANCE and group.initial_rebalance:
        group.new_member_added = True
    group.add(member, request.protocol_type)
    joining.result.effect(watch, state, group.group_id, member_id, joining.now_ms + NEW_MEMBER_TIMEOUT_MS)
    reason = joining.reason(f"new member {member_id} with instance id {request.group_instance_id}")
    prepare_or_complete(state, group, joining.result, joining.now_ms, reason)


# With a member id.


def _join_known(joining: Joining) -> None:
    request, group = joining.request, joining.group
    member_id = request.member_id
    if member_id in group.pending_joins:
        if request.group_instance_id is not None:  # only dynamic members get an id in advance
            joining.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            _add(joining, member_id)
        return
    try:
        group.check_member(member_id, request.group_instance_id)
    except KafkaError as error:
        joining.refuse(error.code, member_id)
        return
    member = group.edit(member_id)
    reason = _why_rebalance(joining, member)
    if reason is None:
        joining.answer(_unchanged(joining, member))
    else:
        _update(joining, member, joining.ticket)
        prepare_or_complete(joining.state, group, joining.result, joining.now_ms, joining.reason(reason))


def _why_rebalance(joining: Joining, member: ClassicMember) -> str | None:
    """Returns the reason why a member that joins again needs a new generation; None if it only missed the present
    one."""
    group = joining.group
    if group.state is PREPARING_REBALANCE:
        return f"member {member.member_id} joins during {group.state_name}"
    if group.state is STABLE and group.is_leader(member.member_id):
        return f"leader {member.member_id} joins again during {group.state_name}"
    if member.strategies != joining.strategies:
        return f"metadata of member {member.member_id} changed during {group.state_name}"
    return None


def _unchanged(joining: Joining, member: ClassicMember) -> JoinGroupResponse:
    """Returns the answer for the present generation, which the member missed."""
    return joined(joining.group, member)


def _update(joining: Joining, member: ClassicMember, ticket: Ticket[JoinGroupResponse]) -> None:
    """Updates a waiting member with its new request. An earlier request that still waits has been cancelled by its
    client."""
    group, request = joining.group, joining.request
    answer_join(group, member, joining.result, join_refused(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
    group.change_strategies(member, joining.strategies)
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    group.joining += 1
    member.join_ticket = ticket


# Static members (KIP-345).


def _replace_static(joining: Joining, old: ClassicMember, member_id: str) -> None:
    """Replaces a static member that came back with a new member id, and keeps its assignment."""
    state, group, result, now_ms = joining.state, joining.group, joining.result, joining.now_ms
    leader_before = group.leader
    member = _take_place(joining, old, member_id)
    keep_session(state, group, member, result, now_ms)
    if group.state is PREPARING_REBALANCE:
        _update(joining, member, joining.ticket)
        complete_if_joined(state, group, result, now_ms)
        return
    strategy_before = group.strategy
    _update(joining, member, joining.ticket)
    if group.state is COMPLETING_REBALANCE:
        prepare(state, group, result, now_ms, joining.reason(f"static member {member.instance_id} joined again"))
    elif group.select_strategy() != strategy_before:
        prepare(
            state, group, result, now_ms, joining.reason(f"static member {member.instance_id} changed the strategy")
        )
    else:
        result.records.append(as_is(group))
        result.effect(settle, state, group.group_id)
        answer_join(group, member, result, _replaced(joining, member, leader_before))


def _take_place(joining: Joining, old: ClassicMember, member_id: str) -> ClassicMember:
    """Replaces the old member in the group; requests that wait with the old member id are fenced."""
    group, result, code = joining.group, joining.result, ErrorCode.FENCED_INSTANCE_ID
    old = group.edit(old.member_id)
    answer_join(group, old, result, join_refused(old.member_id, code))
    answer_sync(old, result, SyncGroupResponse(error_code=code, assignment=b""))
    result.effect(joining.state.timers.cancel, session_key(group.group_id, old.member_id))
    return group.rename(old, member_id)


def _replaced(joining: Joining, member: ClassicMember, leader_before: str | None) -> JoinGroupResponse:
    """Returns the answer without a rebalance. A leader whose client can skip the assignment stays leader. For an older
    client the answer names another leader, because an older leader would send assignments."""
    if joining.client.version >= FIRST_SKIP_ASSIGNMENT_VERSION:
        return joined(joining.group, member, skip_assignment=joining.group.is_leader(member.member_id))
    response = joined(joining.group, member)
    response.leader, response.members = leader_before or "", []
    return response
