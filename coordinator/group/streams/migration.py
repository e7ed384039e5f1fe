"""Finds the group of a streams member; an empty classic group becomes a streams group.

The offsets of the classic group remain. A group with members can't be converted: the application must be stopped first.
Source: GroupMetadataManager.getOrCreateStreamsGroup (KIP-1071).
"""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState
from coordinator.group.streams.group import StreamsGroup
from protocol.errors import ErrorCode, KafkaError


def find_or_make(state: GroupState, group_id: str, result: GroupResult, *, joining: bool) -> StreamsGroup:
    """Returns the streams group of a request. If the member joins, a missing group is created and an empty classic
    group converted; the returned group isn't in the table until the records are applied. Raises GROUP_ID_NOT_FOUND."""
    group = state.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        return group
    if group is None:
        if not joining:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return StreamsGroup(group_id)
    if not joining or not isinstance(group, ClassicGroup) or not group.is_empty:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    result.records += group.tombstones()
    result.effect(state.note, "became a streams group", group=group_id)
    return StreamsGroup(group_id)
