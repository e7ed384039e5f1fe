"""Removes members of a share group: they leave, or their session expires.

Source: GroupMetadataManager's shareGroupFenceMember and scheduleShareGroupSessionTimeout (KIP-932).
"""

from __future__ import annotations

from coordinator.group.draft import Draft
from coordinator.group.records import GroupResult
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup, session_key
from coordinator.group.share.member import ShareMember
from coordinator.group.state import GroupState


def fence(state: GroupState, group: ShareGroup, member: ShareMember, draft: Draft) -> None:
    """Writes the member's tombstones and the group's next epoch; its session ends when the records are applied."""
    draft.records += records.COMMON.all_of_member_gone(group.group_id, member.member_id)
    metadata_hash = state.watch.group_hash(group.subscriptions_with(member, None))
    draft.records.append(records.COMMON.epoch(group.group_id, group.epoch + 1, metadata_hash))


def keep_session(state: GroupState, group_id: str, member_id: str, now_ms: int) -> None:
    """Extends a member's session; an effect."""
    deadline_ms = now_ms + state.environment.group_config(group_id).share_session_timeout_ms
    key = session_key(group_id, member_id)
    if not state.timers.postpone(key, deadline_ms):
        state.timers.set(key, deadline_ms, lambda now_ms: expire(state, group_id, member_id, now_ms))


def expire(state: GroupState, group_id: str, member_id: str, now_ms: int) -> GroupResult:
    """Removes a member whose session has expired; does nothing if it is gone already."""
    group = state.groups.get(group_id)
    draft = Draft()
    if isinstance(group, ShareGroup) and member_id in group.members:
        reason = "the member session expired"
        draft.effect(state.note, "member fenced", group=group_id, member=member_id, reason=reason)
        fence(state, group, group.members[member_id], draft)
    return draft.result()


def activate(state: GroupState, now_ms: int) -> None:
    """Starts the sessions of the loaded groups' members."""
    for group in state.groups.values():
        if isinstance(group, ShareGroup):
            for member_id in group.members:
                keep_session(state, group.group_id, member_id, now_ms)
