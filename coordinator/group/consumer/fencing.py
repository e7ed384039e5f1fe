"""Removes members of a consumer group: they leave, or they are fenced because they missed a deadline.

Tombstones delete each of the member's records, and the group gets a new epoch. If all remaining members use the classic
protocol, the group becomes a classic group instead. Source: GroupMetadataManager's consumerGroupFenceMembers and its
timers (KIP-848). The functions that set deadlines are effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.consumer import records
from coordinator.group.consumer.downgrade import can_downgrade_without, downgrade
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, MemberState
from coordinator.group.modern.deadlines import MemberDeadlines
from coordinator.group.modern.group import ModernGroup
from coordinator.group.modern.timers import MemberDeadline, key
from coordinator.group.modern.update import write_end_of_targets
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState


def fence(state: GroupState, group: ConsumerGroup, members: Sequence[Member], result: GroupResult, now_ms: int) -> None:
    """Removes members; their timers are cancelled when the records are applied."""
    if not members:
        return
    if can_downgrade_without(state, group, members, result):
        reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
        downgrade(state, group, result, now_ms, leaving=members, reason=reason)
        return
    for member in members:
        result.records += records.COMMON.all_of_member_gone(group.group_id, member.member_id)
    subscriptions = group.subscriptions.copy()
    for member in members:
        subscriptions.replace(member, None)
    leaving = Counter(member.regex for member in members if member.regex)
    for pattern, count in leaving.items():
        if group.subscriptions.patterns[pattern] == count:
            result.records.append(records.regex_gone(group.group_id, pattern))
            resolved = group.resolved.get(pattern)
            subscriptions.resolve(resolved.topics if resolved else (), ())
    metadata_hash = state.watch.group_hash(subscriptions.topics)
    epoch = group.epoch + 1
    result.records.append(records.COMMON.epoch(group.group_id, epoch, metadata_hash))
    write_end_of_targets(group, len(members), epoch, result)


def _fence_one(
    state: GroupState, group: ModernGroup[Member, Assignment], member: Member, result: GroupResult, now_ms: int
) -> None:
    assert isinstance(group, ConsumerGroup)
    fence(state, group, [member], result, now_ms)


DEADLINES: Final = MemberDeadlines(ConsumerGroup, _fence_one)


def keep_session(state: GroupState, group_id: str, member: Member, now_ms: int) -> None:
    """Extends a member's session. A member of the classic protocol has set its own session timeout."""
    timeout_ms = member.classic_session_timeout_ms
    if timeout_ms is None:
        timeout_ms = state.environment.group_config(group_id).consumer_session_timeout_ms
    DEADLINES.watch(state, MemberDeadline.SESSION, group_id, member.member_id, now_ms + timeout_ms)


def watch_join(state: GroupState, group_id: str, member: Member, now_ms: int) -> None:
    """Starts the join deadline of a member of the classic protocol that was told to rejoin; a second call doesn't
    extend it."""
    if key(MemberDeadline.JOIN, group_id, member.member_id) not in state.timers:
        DEADLINES.watch(state, MemberDeadline.JOIN, group_id, member.member_id, now_ms + member.rebalance_timeout_ms)


def watch_sync(state: GroupState, group_id: str, member: Member, now_ms: int) -> None:
    """Starts the sync deadline of a member of the classic protocol that has joined."""
    state.timers.cancel(key(MemberDeadline.JOIN, group_id, member.member_id))
    DEADLINES.watch(state, MemberDeadline.SYNC, group_id, member.member_id, now_ms + member.rebalance_timeout_ms)


def stop_sync_deadline(state: GroupState, group_id: str, member_id: str) -> None:
    """Cancels the sync deadline: the member has synced."""
    state.timers.cancel(key(MemberDeadline.SYNC, group_id, member_id))


def activate(state: GroupState, now_ms: int) -> None:
    """Starts the sessions of the loaded groups' members, and their deadlines to give up partitions."""
    for group in state.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                keep_session(state, group.group_id, member, now_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    DEADLINES.rebalance(state, group.group_id, member, now_ms, is_revoking=True)
