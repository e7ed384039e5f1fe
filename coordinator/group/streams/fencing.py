"""Removes members of a streams group: they leave, or they are fenced because they missed a deadline.

Source: GroupMetadataManager's streamsGroupFenceMember and its timers (KIP-1071).
"""

from __future__ import annotations

from typing import Final

from coordinator.group.modern.deadlines import MemberDeadlines
from coordinator.group.modern.group import ModernGroup
from coordinator.group.modern.timers import MemberDeadline
from coordinator.group.modern.update import write_end_of_targets
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState
from coordinator.group.streams import records
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.reconciliation import StreamsMemberState
from coordinator.group.streams.tasks import TaskAssignment


def fence(
    state: GroupState,
    group: ModernGroup[StreamsMember, TaskAssignment],
    member: StreamsMember,
    result: GroupResult,
    now_ms: int,
) -> None:
    """Writes the member's tombstones and the group's next epoch. Its timers are cancelled when these are applied."""
    assert isinstance(group, StreamsGroup)
    epoch = group.epoch + 1
    result.records += records.COMMON.all_of_member_gone(group.group_id, member.member_id)
    result.records.append(records.epoch(group.group_id, epoch, group.description))
    write_end_of_targets(group, 1, epoch, result)


DEADLINES: Final = MemberDeadlines(StreamsGroup, fence)


def keep_session(state: GroupState, group_id: str, member_id: str, now_ms: int) -> None:
    """Extends a member's session; an effect."""
    deadline_ms = now_ms + state.environment.group_config(group_id).streams_session_timeout_ms
    DEADLINES.watch(state, MemberDeadline.SESSION, group_id, member_id, deadline_ms)


def activate(state: GroupState, now_ms: int) -> None:
    """Starts the sessions of the loaded groups' members, and their deadlines to give up tasks."""
    for group in state.groups.values():
        if isinstance(group, StreamsGroup):
            for member in group.members.values():
                keep_session(state, group.group_id, member.member_id, now_ms)
                if member.state is StreamsMemberState.UNREVOKED_TASKS:
                    DEADLINES.rebalance(state, group.group_id, member, now_ms, is_revoking=True)
