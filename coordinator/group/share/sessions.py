"""Removes members of a share group: they leave, or their session expires.

Source: GroupMetadataManager's shareGroupFenceMember and scheduleShareGroupSessionTimeout (KIP-932).
"""

from __future__ import annotations

from typing import Final

from coordinator.group.assignment import Assignment
from coordinator.group.modern.deadlines import MemberDeadlines
from coordinator.group.modern.group import ModernGroup
from coordinator.group.modern.timers import MemberDeadline
from coordinator.group.modern.update import write_end_of_targets
from coordinator.group.records import GroupResult
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.member import ShareMember
from coordinator.group.state import GroupState


def fence(
    state: GroupState,
    group: ModernGroup[ShareMember, Assignment],
    member: ShareMember,
    result: GroupResult,
    now_ms: int,
) -> None:
    """Writes the member's tombstones and the group's next epoch; its session ends when the records are applied."""
    assert isinstance(group, ShareGroup)
    result.records += records.COMMON.all_of_member_gone(group.group_id, member.member_id)
    metadata_hash = state.watch.group_hash(group.subscriptions_with(member, None))
    epoch = group.epoch + 1
    result.records.append(records.COMMON.epoch(group.group_id, epoch, metadata_hash))
    write_end_of_targets(group, 1, epoch, result)


DEADLINES: Final = MemberDeadlines(ShareGroup, fence)


def keep_session(state: GroupState, group_id: str, member_id: str, now_ms: int) -> None:
    """Extends a member's session; an effect."""
    deadline_ms = now_ms + state.environment.group_config(group_id).share_session_timeout_ms
    DEADLINES.watch(state, MemberDeadline.SESSION, group_id, member_id, deadline_ms)


def activate(state: GroupState, now_ms: int) -> None:
    """Starts the sessions of the loaded groups' members."""
    for group in state.groups.values():
        if isinstance(group, ShareGroup):
            for member_id in group.members:
                keep_session(state, group.group_id, member_id, now_ms)
