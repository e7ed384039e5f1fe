"""The rebalance of a classic group: waits for members to join, and removes members that are late.

Heartbeats tell members to rejoin; once all have joined, or the rebalance timeout is over, every member gets the new
generation (`complete_join`), and the leader's assignment ends the rebalance (`sync.py`). All of this is only in memory;
only a group that becomes empty is written. The steps change a fork of the group (`changed`). Source:
GroupMetadataManager, its classicGroup methods.
"""

from __future__ import annotations

from coordinator.engine.result import Result
from coordinator.group.classic.group import ClassicGroup, join_key, session_key, sync_key
from coordinator.group.classic.member import NO_ASSIGNMENT, ClassicMember
from coordinator.group.classic.records import empty_generation
from coordinator.group.classic.rendezvous import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse

NO_GENERATION = -1

LEAST_WAIT_FOR_JOINS_MS = 1_000
"""Minimum wait for joins. A member's rebalance timeout may be zero or negative: a group whose static members are all
away would then check for them in an endless loop."""


def changed(state: GroupState, group: ClassicGroup, result: GroupResult) -> ClassicGroup:
    """Returns a fork of the group for the decision to change; the group takes the changes over once the records are
    applied."""
    fork = group.fork()
    result.effect(_take, state, fork)
    return fork


def _take(state: GroupState, fork: ClassicGroup) -> None:
    state.group_of(fork.group_id, ClassicGroup).take(fork)


def prepare(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int, reason: str) -> None:
    """Begins a rebalance. The first rebalance of an empty group waits for more members; any other rebalance waits for
    the present members."""
    if group.state is COMPLETING_REBALANCE:
        _take_assignments_back(state, group, result, now_ms)
    stop_waiting_for_syncs(state, group, result)
    initial = group.state is EMPTY
    group.initial_rebalance = initial
    group.transition(PREPARING_REBALANCE, now_ms)
    result.effect(state.note, "rebalance", group=group.group_id, generation=group.generation, reason=reason)
    if initial:
        delay_ms = state.settings.group_initial_rebalance_delay_ms
        _delay(state, group, result, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now_ms)
    elif group.everyone_joined:
        complete_join(state, group, result, now_ms)
    else:
        _wait_for_joins(state, group, result, now_ms)


def rebalance(state: GroupState, group: ClassicGroup, now_ms: int, reason: str) -> None:
    """Begins a rebalance after a group was restored; an effect. There is no reply or record: no member has joined yet,
    and the rebalance timeout must pass."""
    result: GroupResult = Result()
    prepare(state, changed(state, group, result), result, now_ms, reason)
    assert len(result.records) + len(result.replies) == 0, "there is no append"
    for effect in result.effects:
        effect()


def prepare_or_complete(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int, reason: str) -> None:
    """Begins a rebalance after the members changed, or continues the present rebalance."""
    if group.state is PREPARING_REBALANCE:
        complete_if_joined(state, group, result, now_ms)
    else:
        prepare(state, group, result, now_ms, reason)


def complete_if_joined(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    """Completes a rebalance that all members have joined, unless it is the first rebalance, which always lasts for its
    delay."""
    if group.state is PREPARING_REBALANCE and not group.initial_rebalance and group.everyone_joined:
        complete_join(state, group, result, now_ms)


def complete_join(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    """Begins the next generation, with the members that joined, and with all static members, even if they are late."""
    result.effect(state.timers.cancel, join_key(group.group_id))
    for member in list(group.members.values()):
        if not member.is_joining and not member.is_static:
            remove_member(state, group, member, result)
    if not group.members:
        result.records.append(empty_generation(group, now_ms))
        result.effect(settle, state, group.group_id)
    elif group.elect_joined_leader():
        _begin_generation(state, group, result, now_ms)
    else:  # static members only, and none is back yet
        _wait_for_joins(state, group, result, now_ms)


def settle(state: GroupState, group_id: str) -> None:
    """Ends the rebalance: an effect that follows the group's record."""
    group = state.group_of(group_id, ClassicGroup)
    group.settle(group.stored)


def _begin_generation(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    group.generation += 1
    group.strategy = group.select_strategy()
    group.read_subscriptions()
    group.transition(COMPLETING_REBALANCE, now_ms)
    group.pending_syncs = dict.fromkeys(group.members)
    for member_id in group.members:
        member = group.edit(member_id)
        answer_join(group, member, result, joined(group, member))
        keep_session(state, group, member, result, now_ms)
        member.is_new = False
    deadline_ms = now_ms + group.rebalance_timeout_ms
    group_id, generation = group.group_id, group.generation
    result.effect(
        state.timers.set, sync_key(group_id), deadline_ms, lambda now: expire_syncs(state, group_id, generation, now)
    )


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


def answer_join(group: ClassicGroup, member: ClassicMember, result: GroupResult, answer: JoinGroupResponse) -> None:
    """Answers a member, which the decision may change, if it waits for the rebalance."""
    if member.join_ticket is not None:
        result.answer(member.join_ticket, answer)
        member.join_ticket = None
        group.joining -= 1


def answer_sync(member: ClassicMember, result: GroupResult, answer: SyncGroupResponse) -> bool:
    """Answers a member, which the decision may change; False if it doesn't wait for its assignment."""
    if member.sync_ticket is None:
        return False
    result.answer(member.sync_ticket, answer)
    member.sync_ticket = None
    return True


def remove_member(state: GroupState, group: ClassicGroup, member: ClassicMember, result: GroupResult) -> None:
    """Removes a member and its session; its waiting requests get UNKNOWN_MEMBER_ID."""
    result.effect(state.timers.cancel, session_key(group.group_id, member.member_id))
    member = group.edit(member.member_id)
    answer_join(group, member, result, join_refused("", ErrorCode.UNKNOWN_MEMBER_ID))
    answer_sync(member, result, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, assignment=b""))
    group.remove(member.member_id)


def _take_assignments_back(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    """Ends a generation without assignments: members that wait for their assignment join the next generation."""
    for member_id in group.members:
        member = group.edit(member_id)
        member.assignment = NO_ASSIGNMENT
        answer = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
        if answer_sync(member, result, answer):
            keep_session(state, group, member, result, now_ms)


# Deadlines.


def keep_session(
    state: GroupState, group: ClassicGroup, member: ClassicMember, result: GroupResult, now_ms: int
) -> None:
    """Extends a member's session."""
    result.effect(watch, state, group.group_id, member.member_id, now_ms + member.session_timeout_ms)


def watch(state: GroupState, group_id: str, member_id: str, deadline_ms: int) -> None:
    """Sets the deadline at which a member, pending or not, is removed unless a request extends it; an effect."""
    key = session_key(group_id, member_id)
    if not state.timers.postpone(key, deadline_ms):
        state.timers.set(key, deadline_ms, lambda now_ms: expire_session(state, group_id, member_id, now_ms))


def expire_session(state: GroupState, group_id: str, member_id: str, now_ms: int) -> GroupResult:
    """Removes a member without heartbeats, or a client that never joined with its member id."""
    result: GroupResult = Result()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return result
    member = group.members.get(member_id)
    if member_id not in group.pending_joins and (member is None or member.is_excused):
        return result
    group = changed(state, group, result)
    if member is None:
        group.remove(member_id)
    else:
        remove_member(state, group, member, result)
    result.effect(state.note, "session expired", group=group_id, member=member_id)
    if group.state is PREPARING_REBALANCE:
        if group.everyone_joined:
            complete_join(state, group, result, now_ms)
    elif member is not None:
        prepare(state, group, result, now_ms, f"the session of {member_id} expired")
    return result


def expire_syncs(state: GroupState, group_id: str, generation: int, now_ms: int) -> GroupResult:
    """Removes members that joined this generation and haven't synced."""
    result: GroupResult = Result()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.generation != generation:
        return result
    if group.state in (COMPLETING_REBALANCE, STABLE) and group.pending_syncs:
        group = changed(state, group, result)
        late = sorted(group.pending_syncs)
        for member_id in late:
            remove_member(state, group, group.members[member_id], result)
        prepare(state, group, result, now_ms, f"{', '.join(late)} did not sync in time")
    return result


def stop_waiting_for_syncs(state: GroupState, group: ClassicGroup, result: GroupResult) -> None:
    """Stops waiting for syncs: all members have synced, or no longer need to."""
    group.pending_syncs = {}
    result.effect(state.timers.cancel, sync_key(group.group_id))


def _wait_for_joins(state: GroupState, group: ClassicGroup, result: GroupResult, now_ms: int) -> None:
    deadline_ms = now_ms + max(group.rebalance_timeout_ms, LEAST_WAIT_FOR_JOINS_MS)
    group_id = group.group_id
    result.effect(state.timers.set, join_key(group_id), deadline_ms, lambda now: _joins_over(state, group_id, now))


def _joins_over(state: GroupState, group_id: str, now_ms: int) -> GroupResult:
    result: GroupResult = Result()
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup) and group.state is PREPARING_REBALANCE:
        complete_join(state, changed(state, group, result), result, now_ms)
    return result


def _delay(
    state: GroupState, group: ClassicGroup, result: GroupResult, delay_ms: int, remaining_ms: int, now_ms: int
) -> None:
    """Waits for more members; repeats the wait if new members came, until the rebalance timeout is over (KIP-134)."""
    group.new_member_added = False
    group_id = group.group_id
    result.effect(
        state.timers.set,
        join_key(group_id),
        now_ms + delay_ms,
        lambda now: _delay_over(state, group_id, delay_ms, remaining_ms, now),
    )


def _delay_over(state: GroupState, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> GroupResult:
    result: GroupResult = Result()
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not PREPARING_REBALANCE:
        return result
    group = changed(state, group, result)
    if group.new_member_added and remaining_ms > 0:
        next_ms = min(state.settings.group_initial_rebalance_delay_ms, remaining_ms)
        _delay(state, group, result, next_ms, max(remaining_ms - delay_ms, 0), now_ms)
    else:
        complete_join(state, group, result, now_ms)
    return result
