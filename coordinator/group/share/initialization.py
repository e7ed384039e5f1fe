"""The group's record of its share partitions' state: to initialize, initialized, altered, deleted.

The share coordinator stores the state itself. Source: maybeCreateInitializeShareGroupStateRequest,
initializeShareGroupState, uninitializeShareGroupState, maybeCleanupShareGroupState in GroupMetadataManager (KIP-932).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from coordinator.engine.result import Result, Ticket, answered
from coordinator.group.records import AnyRecord, GroupResult
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.topics import InitTopic
from coordinator.group.state import GroupState
from protocol.types import Uuid

FROM_RESET_STRATEGY: Final = -1
"""The start offset of a state that the group's reset strategy will decide later."""

Offsets = Mapping[Uuid, Mapping[int, int]]


class Initialize(NamedTuple):
    """State to initialize, with a start offset for each partition; afterwards `initialized`, or `uninitialized` after a
    failure, updates the group."""

    group_id: str
    state_epoch: int
    offsets: Offsets


def missing(state: GroupState, group: ShareGroup, topic_names: Iterable[str], now_ms: int) -> dict[Uuid, InitTopic]:
    """Returns the partitions of subscribed topics that have no state, and whose initialization wasn't requested
    recently."""
    retry_ms = state.settings.group_share_initialize_retry_interval_ms
    result = {}
    for name in sorted(topic_names):
        topic = state.environment.topics.topic(name)
        if topic is None:
            continue
        covered: set[int] = set()
        if topic.topic_id in group.topics.initialized:
            covered |= group.topics.initialized[topic.topic_id].partitions
        since_ms = state.state_asked_ms.get((group.group_id, topic.topic_id))
        if since_ms is not None and now_ms - since_ms < retry_ms and topic.topic_id in group.topics.initializing:
            covered |= group.topics.initializing[topic.topic_id].partitions
        if len(covered) < len(topic.partitions):
            result[topic.topic_id] = InitTopic(name, frozenset(topic.partitions) - covered)
    return result


def initialize(
    state: GroupState,
    group: ShareGroup,
    group_epoch: int,
    topics: Mapping[Uuid, InitTopic],
    result: GroupResult,
    now_ms: int,
) -> Initialize | None:
    """Records that state is being initialized, and returns the request for it."""
    if not topics:
        return None
    result.effect(state.note_state_asked, group.group_id, topics, now_ms)
    result.records.append(records.state_topics(group.group_id, group.topics.with_initializing(topics)))
    offsets = {
        topic_id: dict.fromkeys(sorted(topic.partitions), FROM_RESET_STRATEGY) for topic_id, topic in topics.items()
    }
    return Initialize(group.group_id, group_epoch, offsets)


def _named(state: GroupState, offsets: Offsets) -> dict[Uuid, InitTopic]:
    result = {}
    for topic_id, partitions in offsets.items():
        topic = state.environment.topics.topic_by_id(topic_id)
        result[topic_id] = InitTopic("<UNKNOWN>" if topic is None else topic.name, frozenset(partitions))
    return result


def initialized(state: GroupState, made: Initialize, client: None, ticket: Ticket[None], now_ms: int) -> GroupResult:
    """Records that the state is initialized: its partitions may be assigned."""
    result: GroupResult = Result()
    result.effect(state.forget_state_asked, made.group_id, made.offsets)
    result.answer(ticket, None)
    group = state.groups.get(made.group_id)
    if isinstance(group, ShareGroup):
        topics = group.topics.with_initialized(_named(state, made.offsets))
        result.records.append(records.state_topics(group.group_id, topics))
    return result


def uninitialized(
    state: GroupState, failed: Initialize, client: None, ticket: Ticket[None], now_ms: int
) -> GroupResult:
    """Records that the state could not be initialized: the next heartbeat requests it again."""
    group = state.groups.get(failed.group_id)
    if not isinstance(group, ShareGroup) or not group.topics.initializing:
        return answered(ticket, None)
    topics = group.topics.without_initializing(_named(state, failed.offsets))
    return answered(ticket, None, (records.state_topics(group.group_id, topics),))


def is_assignment_pending(group: ShareGroup) -> bool:
    """True if state of subscribed topics was initialized since the last target assignment."""
    if not group.members or not group.topics.initialized:
        return False
    assigned: dict[Uuid, set[int]] = {}
    for assignment in group.targets.values():
        for topic_id, partitions in assignment.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        topic.name in group.subscriptions and assigned.get(topic_id, set()) != set(topic.partitions)
        for topic_id, topic in group.topics.initialized.items()
    )


def topics_deleted(state: GroupState, topics: Mapping[str, Uuid], now_ms: int) -> GroupResult:
    """Removes deleted topics from the groups; the share coordinator deletes their state itself."""
    gone = frozenset(topics.values())
    written: list[AnyRecord] = [
        records.state_topics(group.group_id, group.topics.without(gone))
        for group in state.groups.values()
        if isinstance(group, ShareGroup) and any(map(group.topics.has, gone))
    ]
    return Result(written)
