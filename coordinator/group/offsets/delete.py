"""Deletes offsets: by OffsetDelete, with their group, with their topic, or when they expire.

Source: OffsetMetadataManager.deleteOffsets, deleteAllOffsets, onTopicsDeleted, cleanupExpiredOffsets (KIP-211,
KIP-496).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from coordinator.engine.result import Effect, Result, Ticket, answered
from coordinator.group.group import Group
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import NO_TIMESTAMP, AnyRecord, GroupResult, offset_gone
from coordinator.group.state import Client, GroupState
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.types import NO_UUID, Uuid

EXPIRY_KEY = "offset expiry"
"""The timer of the shard's regular check for expired offsets."""

GROUPS_AT_ONCE = 500
"""Groups that are checked in one step: a few milliseconds, which delays no client much."""

PAUSE_MS = 20
"""Pause between two steps of an expiry check."""


def delete(
    state: GroupState, request: OffsetDeleteRequest, client: Client, ticket: Ticket[OffsetDeleteResponse], now_ms: int
) -> GroupResult:
    """Deletes offsets; raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP. A topic that members still read keeps its
    offsets."""
    group = state.group(request.group_id)
    group.check_offset_delete()
    records: list[AnyRecord] = []
    topics = []
    for topic in request.topics:
        indexes = [partition.partition_index for partition in topic.partitions]
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
        if not code:
            records += [
                offset_gone(group.group_id, topic.name, index)
                for index in indexes
                if _is_there(state, group.group_id, topic.name, index)
            ]
        answers = [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes]
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    return answered(ticket, OffsetDeleteResponse(error_code=0, topics=topics), records)


def _is_there(state: GroupState, group_id: str, topic: str, index: int) -> bool:
    committed = state.offsets.get(group_id, topic, index) is not None
    return committed or state.offsets.is_pending(group_id, topic, index)


def all_offsets_gone(state: GroupState, group_id: str) -> list[AnyRecord]:
    """Returns the records that delete all offsets of a group, also pending ones."""
    names = {(topic, index) for topic, partitions in state.offsets.of_group(group_id).items() for index in partitions}
    names |= set(state.offsets.pending(group_id))
    return [offset_gone(group_id, topic, index) for topic, index in sorted(names)]


def topics_deleted(state: GroupState, topics: Mapping[str, Uuid], now_ms: int) -> GroupResult:
    """Deletes the offsets of deleted topics (names with their ids), except offsets of new topics with the same
    names."""
    records: list[AnyRecord] = []
    for group_id in state.offsets.groups():
        gone = {
            (topic, index)
            for topic, partitions in state.offsets.of_group(group_id).items()
            for index, offset in partitions.items()
            if topic in topics and offset.topic_id in (NO_UUID, topics[topic])
        }
        gone |= {name for name in state.offsets.pending(group_id) if name.topic in topics}
        records += [offset_gone(group_id, topic, index) for topic, index in sorted(gone)]
    return Result(records)


# Expiry (KIP-211).


def activate(state: GroupState, now_ms: int) -> None:
    """Starts the check for expired offsets, at intervals."""
    interval_ms = state.settings.offsets_retention_check_interval_ms
    state.timers.set(EXPIRY_KEY, now_ms + interval_ms, lambda now: expire(state, list(state.groups), now))


def expire(state: GroupState, group_ids: list[str], now_ms: int) -> GroupResult:
    """Deletes expired offsets, and groups without members and offsets: the first groups now, the others after a
    pause."""
    rest = group_ids[GROUPS_AT_ONCE:]
    effect: Effect = partial(activate, state, now_ms)
    if rest:
        effect = partial(state.timers.set, EXPIRY_KEY, now_ms + PAUSE_MS, lambda now: expire(state, rest, now))
    records: list[AnyRecord] = []
    for group_id in group_ids[:GROUPS_AT_ONCE]:
        group = state.groups.get(group_id)
        if group is None or not group.expires:
            continue
        expired = list(_expired(state, group, now_ms))
        records += expired
        if group.is_empty and len(expired) == _offset_count(state, group) and not _in_transaction(state, group):
            records += group.tombstones()
    return Result(records, (), (effect,))


def _expired(state: GroupState, group: Group, now_ms: int) -> Iterator[AnyRecord]:
    retention_ms = state.settings.offsets_retention_ms
    for topic, partitions in state.offsets.of_group(group.group_id).items():
        if group.is_subscribed_to(topic):
            continue
        for index, offset in partitions.items():
            pending = state.offsets.is_pending(group.group_id, topic, index)
            if not pending and _is_expired(group, offset, retention_ms, now_ms):
                yield offset_gone(group.group_id, topic, index)


def _is_expired(group: Group, offset: Offset, retention_ms: int, now_ms: int) -> bool:
    """True if the expire timestamp that an old client set has passed or, without an expire timestamp, the retention
    time since the last use of the offset."""
    since_ms = group.retained_from_ms(offset)
    if since_ms is None:
        return False
    if offset.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def _offset_count(state: GroupState, group: Group) -> int:
    return sum(map(len, state.offsets.of_group(group.group_id).values()))


def _in_transaction(state: GroupState, group: Group) -> bool:
    return state.offsets.has_open_transaction(group.group_id)
