"""Administration of a share group's offsets: alters them, or deletes them with their state, if the group has no
members.

Source: GroupMetadataManager.alterShareGroupOffsets, sharePartitionsEligibleForOffsetDeletion,
completeDeleteShareGroupOffsets, shareGroupBuildPartitionDeleteRequest (KIP-932).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator.engine.result import Result, Ticket, answered
from coordinator.group.records import GroupResult
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.initialization import Initialize
from coordinator.group.share.topics import InitTopic, Partitions
from coordinator.group.state import GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

Wanted = Mapping[str, Mapping[int, int]]
"""New start offsets of share partitions, by topic."""


class Altered(NamedTuple):
    """The state to initialize, and the errors of partitions that are left out."""

    initialize: Initialize
    errors: Mapping[tuple[str, int], KafkaError]


class Deletion(NamedTuple):
    """The state to delete, by topic, the names of the topics, and the errors of topics without state."""

    partitions: Partitions
    names: Mapping[Uuid, str]
    errors: Mapping[str, KafkaError]


def alter(state: GroupState, group_id: str, requested: Wanted, ticket: Ticket[Altered], now_ms: int) -> GroupResult:
    """Records that state is being initialized again, in a group that may not exist yet; a topic without partitions only
    creates the group. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another type."""
    group = state.groups.get(group_id) or ShareGroup(group_id)
    if not isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    group.check_delete()
    offsets: dict[Uuid, dict[int, int]] = {}
    topics: dict[Uuid, InitTopic] = {}
    errors: dict[tuple[str, int], KafkaError] = {}
    for name, starts in requested.items():
        topic = state.environment.topics.topic(name)
        there = () if topic is None else topic.partitions
        for partition in starts.keys() - there:
            errors[name, partition] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic is not None:
            offsets[topic.topic_id] = {partition: start for partition, start in starts.items() if partition in there}
            topics[topic.topic_id] = InitTopic(name, frozenset(offsets[topic.topic_id]))
    result: GroupResult = Result()
    if topics:
        result.effect(state.note_state_asked, group_id, topics, now_ms)
        result.records.append(records.state_topics(group_id, group.topics.with_initializing(topics)))
    result.answer(ticket, Altered(Initialize(group_id, group.epoch, offsets), errors))
    return result


def begin_delete(
    state: GroupState, group_id: str, topic_names: Sequence[str], ticket: Ticket[Deletion], now_ms: int
) -> GroupResult:
    """Records that the state of topics is being deleted. Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = state.group_of(group_id, ShareGroup)
    group.check_delete()
    partitions: dict[Uuid, frozenset[int]] = {}
    names: dict[Uuid, str] = {}
    errors: dict[str, KafkaError] = {}
    for name in topic_names:
        topic = state.environment.topics.topic(name)
        if topic is None:
            errors[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        if topic.topic_id in group.topics.initialized:
            partitions[topic.topic_id] = group.topics.initialized[topic.topic_id].partitions
        elif topic.topic_id in group.topics.deleting:
            partitions[topic.topic_id] = frozenset(topic.partitions)
        else:
            message = "There is no offset information to delete."
            errors[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            continue
        names[topic.topic_id] = name
    result: GroupResult = Result()
    if names:
        result.records.append(records.state_topics(group_id, group.topics.with_deleting(names)))
    result.answer(ticket, Deletion(partitions, names, errors))
    return result


def begin_delete_all(
    state: GroupState, group_id: str, client: None, ticket: Ticket[Deletion], now_ms: int
) -> GroupResult:
    """Records that all of a group's state is being deleted, before the group is; does nothing for groups of other types
    or with members."""
    group = state.groups.get(group_id)
    if not isinstance(group, ShareGroup) or group.members or group.topics.is_empty:
        return answered(ticket, Deletion({}, {}, {}))
    partitions: dict[Uuid, frozenset[int]] = {}
    names: dict[Uuid, str] = {}
    for topic_id in (*group.topics.initializing, *group.topics.initialized, *group.topics.deleting):
        topic = state.environment.topics.topic_by_id(topic_id)
        if topic is not None:
            partitions[topic_id], names[topic_id] = frozenset(topic.partitions), topic.name
    record = records.state_topics(group_id, group.topics._replace(initializing={}, initialized={}, deleting=names))
    return answered(ticket, Deletion(partitions, names, {}), (record,))


def deleted(
    state: GroupState, group_id: str, topic_ids: frozenset[Uuid], ticket: Ticket[None], now_ms: int
) -> GroupResult:
    """Records that the state of these topics is deleted."""
    group = state.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return answered(ticket, None)
    return answered(ticket, None, (records.state_topics(group_id, group.topics.deleted(topic_ids)),))


def initialized_partitions(
    state: GroupState, group_id: str, client: None, ticket: Ticket[Partitions], now_ms: int
) -> GroupResult:
    """Answers with the share partitions that have state; none if the group doesn't exist."""
    group = state.groups.get(group_id)
    partitions = group.topics.partitions if isinstance(group, ShareGroup) else {}
    return answered(ticket, partitions)
