"""The rebalance of a classic group: waits for members to join, and removes members that are late.

Heartbeats tell members to rejoin; once all have joined, or the rebalance timeout is over, every member gets the new
generation (`complete_join`), and the leader's assignment ends the rebalance (sync.py). All of this is only in memory;
only a group that becomes empty is written. Source: GroupMetadataManager, its classicGroup methods.
"""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup, join_key, session_key, sync_key
from coordinator.group.classic.member import NO_ASSIGNMENT, ClassicMember
from coordinator.group.classic.records import empty_generation
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator.group.draft import Draft
from coordinator.group.records import GroupOutcome
from coordinator.group.state import GroupState
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse

NO_GENERATION = -1

LEAST_WAIT_FOR_JOINS_MS = 1_000
"""Minimum wait for joins. A member's rebalance timeout may be zero or negative: a group whose static members are all
away would then check for them in an endless loop."""


def prepare(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int, reason: str) -> None:
    """Begins a rebalance. The first rebalance of an empty group waits for more members; any other for its present
    members."""
    if group.state is COMPLETING_REBALANCE:
        _take_assignments_back(state, group, draft, now_ms)
    stop_waiting_for_syncs(state, group)
    initial = group.state is EMPTY
    group.initial_rebalance = initial
    group.transition(PREPARING_REBALANCE, now_ms)
    state.note("rebalance", group=group.group_id, generation=group.generation, reason=reason)
    if initial:
        delay_ms = state.settings.group_initial_rebalance_delay_ms
        _delay(state, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now_ms)
    elif group.everyone_joined:
        complete_join(state, group, draft, now_ms)
    else:
        _wait_for_joins(state, group, now_ms)


def prepare_or_complete(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int, reason: str) -> None:
    """Begins a rebalance after the members changed, or continues the one that has begun."""
    if group.state is PREPARING_REBALANCE:
        complete_if_joined(state, group, draft, now_ms)
    else:
        prepare(state, group, draft, now_ms, reason)


def complete_if_joined(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int) -> None:
    """Completes a rebalance that all members have joined, unless it is the first, which waits for its delay."""
    if group.state is PREPARING_REBALANCE and not group.initial_rebalance and group.everyone_joined:
        complete_join(state, group, draft, now_ms)


def complete_join(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int) -> None:
    """Begins the next generation, with the members that joined and with static members, which may be late."""
    state.timers.cancel(join_key(group.group_id))
    for member in list(group.members.values()):
        if not member.is_joining and not member.is_static:
            remove_member(state, group, member, draft)
    if not group.members:
        draft.records.append(empty_generation(group, now_ms))
        settle_after(group, draft)
    elif group.elect_joined_leader():
        _begin_generation(state, group, draft, now_ms)
    else:  # static members only, and none is back yet
        _wait_for_joins(state, group, now_ms)


def settle_after(group: ClassicGroup, draft: Draft) -> None:
    """Ends the rebalance when the group's record, which is in the draft, is applied."""

    def settle(now_ms: int) -> GroupOutcome:
        group.settle(group.stored)
        return Draft().outcome()

    draft.after_apply(settle)


def _begin_generation(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int) -> None:
    group.generation += 1
    group.strategy = group.select_strategy()
    group.read_subscriptions()
    group.transition(COMPLETING_REBALANCE, now_ms)
    group.pending_syncs = set(group.members)
    for member in group.members.values():
        answer_join(group, member, draft, joined(group, member))
        keep_session(state, group, member, now_ms)
        member.is_new = False
    deadline_ms = now_ms + group.rebalance_timeout_ms
    group_id, generation = group.group_id, group.generation
    state.timers.set(sync_key(group_id), deadline_ms, lambda now: expire_syncs(state, group_id, generation, now))


def joined(group: ClassicGroup, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Returns JoinGroup's answer for the present generation; its leader gets the members."""
    return JoinGroupResponse(
        error_code=0,
        generation_id=group.generation,
        protocol_type=group.protocol,
        protocol_name=group.strategy,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members_for_leader(group) if group.is_leader(member.member_id) else [],
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Returns all members, with their metadata for this generation's strategy."""
    strategy = group.strategy or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(strategy)
        )
        for member in group.members.values()
    ]


def join_refused(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    """Returns JoinGroup's answer with an error."""
    return JoinGroupResponse(
        error_code=code, generation_id=NO_GENERATION, protocol_name=None, leader="", member_id=member_id, members=[]
    )


def answer_join(group: ClassicGroup, member: ClassicMember, draft: Draft, answer: JoinGroupResponse) -> None:
    """Answers a member that waits for the rebalance."""
    if member.join_ticket is not None:
        draft.answer(member.join_ticket, answer)
        member.join_ticket = None
        group.joining -= 1


def answer_sync(member: ClassicMember, draft: Draft, answer: SyncGroupResponse) -> bool:
    """Answers a member that waits for its assignment; False if it doesn't wait."""
    if member.sync_ticket is None:
        return False
    draft.answer(member.sync_ticket, answer)
    member.sync_ticket = None
    return True


def remove_member(state: GroupState, group: ClassicGroup, member: ClassicMember, draft: Draft) -> None:
    """Removes a member and its session; its waiting requests get UNKNOWN_MEMBER_ID."""
    state.timers.cancel(session_key(group.group_id, member.member_id))
    answer_join(group, member, draft, join_refused("", ErrorCode.UNKNOWN_MEMBER_ID))
    answer_sync(member, draft, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, assignment=b""))
    group.remove(member.member_id)


def _take_assignments_back(state: GroupState, group: ClassicGroup, draft: Draft, now_ms: int) -> None:
    """Ends a generation without assignments: members that wait for one join the next generation."""
    for member in group.members.values():
        member.assignment = NO_ASSIGNMENT
        answer = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
        if answer_sync(member, draft, answer):
            keep_session(state, group, member, now_ms)


# Deadlines.


def keep_session(state: GroupState, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
    """Extends a member's session."""
    watch(state, group.group_id, member.member_id, now_ms + member.session_timeout_ms)


def watch(state: GroupState, group_id: str, member_id: str, deadline_ms: int) -> None:
    """Removes the member, pending or not, at the deadline unless a request extends it."""
    key = session_key(group_id, member_id)
    if not state.timers.postpone(key, deadline_ms):
        state.timers.set(key, deadline_ms, lambda now_ms: expire_session(state, group_id, member_id, now_ms))


def expire_session(state: GroupState, group_id: str, member_id: str, now_ms: int) -> GroupOutcome:
    """Removes a member without heartbeats, or a client that never joined with its member id."""
    draft = Draft()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return draft.outcome()
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        group.remove(member_id)
    elif member is not None and not member.is_excused:
        remove_member(state, group, member, draft)
    else:
        return draft.outcome()
    state.note("session expired", group=group_id, member=member_id)
    if group.state is PREPARING_REBALANCE:
        if group.everyone_joined:
            complete_join(state, group, draft, now_ms)
    elif member is not None:
        prepare(state, group, draft, now_ms, f"the session of {member_id} expired")
    return draft.outcome()


def expire_syncs(state: GroupState, group_id: str, generation: int, now_ms: int) -> GroupOutcome:
    """Removes members that joined this generation and haven't synced."""
    draft = Draft()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.generation != generation:
        return draft.outcome()
    if group.state in (COMPLETING_REBALANCE, STABLE) and group.pending_syncs:
        late = sorted(group.pending_syncs)
        for member_id in late:
            remove_member(state, group, group.members[member_id], draft)
        prepare(state, group, draft, now_ms, f"{', '.join(late)} did not sync in time")
    return draft.outcome()


def stop_waiting_for_syncs(state: GroupState, group: ClassicGroup) -> None:
    """Stops waiting for syncs: all members have synced, or no longer need to."""
    group.pending_syncs.clear()
    state.timers.cancel(sync_key(group.group_id))


def _wait_for_joins(state: GroupState, group: ClassicGroup, now_ms: int) -> None:
    deadline_ms = now_ms + max(group.rebalance_timeout_ms, LEAST_WAIT_FOR_JOINS_MS)
    state.timers.set(join_key(group.group_id), deadline_ms, lambda now: _joins_over(state, group.group_id, now))


def _joins_over(state: GroupState, group_id: str, now_ms: int) -> GroupOutcome:
    draft = Draft()
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup) and group.state is PREPARING_REBALANCE:
        complete_join(state, group, draft, now_ms)
    return draft.outcome()


def _delay(state: GroupState, group: ClassicGroup, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
    """Waits for more members, and as long again while they come, until the rebalance timeout is used up (KIP-134)."""
    group.new_member_added = False
    group_id = group.group_id
    state.timers.set(
        join_key(group_id), now_ms + delay_ms, lambda now: _delay_over(state, group_id, delay_ms, remaining_ms, now)
    )


def _delay_over(state: GroupState, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> GroupOutcome:
    draft = Draft()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not PREPARING_REBALANCE:
        return draft.outcome()
    if group.new_member_added and remaining_ms > 0:
        next_ms = min(state.settings.group_initial_rebalance_delay_ms, remaining_ms)
        _delay(state, group, next_ms, max(remaining_ms - delay_ms, 0), now_ms)
    else:
        complete_join(state, group, draft, now_ms)
    return draft.outcome()
