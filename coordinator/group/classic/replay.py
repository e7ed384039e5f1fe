"""Replays the records of classic groups, and restores the groups after loading."""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rebalance import rebalance, watch
from coordinator.group.classic.stored import from_record
from coordinator.group.records import GroupRecord
from coordinator.group.state import Apply, GroupState
from protocol.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue


def group_metadata(state: GroupState, record: GroupRecord) -> None:
    """Stores the group of the record, or removes a group that was deleted, or converted to another type."""
    key, value = record.key, record.value
    assert isinstance(key, GroupMetadataKey)
    group = state.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            group.cancel_timers(state.timers)
            del state.groups[key.group]
        return
    assert isinstance(value, GroupMetadataValue)
    if not isinstance(group, ClassicGroup):
        group = state.groups[key.group] = ClassicGroup(key.group)
    group.stored = from_record(value)


def activate(state: GroupState, now_ms: int) -> None:
    """Restores the loaded groups: their members must send heartbeats again."""
    for group in list(state.groups.values()):
        if isinstance(group, ClassicGroup):
            group.restore(group.stored)
            for member in group.members.values():
                watch(state, group.group_id, member.member_id, now_ms + member.session_timeout_ms)
            _rebalance_if_needed(state, group, now_ms)


def _rebalance_if_needed(state: GroupState, group: ClassicGroup, now_ms: int) -> None:
    max_size = state.settings.group_max_size
    if len(group.members) > max_size:
        reason = f"{len(group.members)} members are more than group.max.size {max_size} allows"
    elif group.members and group.leader is None:  # it became classic, and had not rebalanced yet (downgrade.py)
        reason = f"Group {group.group_id} was loaded without a leader."
    else:
        return
    group.leader = group.leader or next(iter(group.members))
    rebalance(state, group, now_ms, reason)


APPLY: dict[type, Apply] = {GroupMetadataKey: group_metadata}
