"""OffsetFetch: returns a group's committed offsets, of named partitions or all.

With require-stable, a partition with a pending offset of an open transaction returns an error (KIP-447). Source:
OffsetMetadataManager.fetchOffsets and fetchAllOffsets.
"""

from __future__ import annotations

from coordinator.engine.result import Ticket, answered
from coordinator.group.group import Group
from coordinator.group.offsets.offsets import NO_OFFSETS, ByTopic, Offset
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.types import Uuid

INVALID_OFFSET = -1
NO_LEADER_EPOCH = -1


def fetch(
    state: GroupState,
    request: OffsetFetchRequestGroup,
    require_stable: bool,
    ticket: Ticket[OffsetFetchResponseGroup],
    now_ms: int,
) -> GroupResult:
    """Answers for one group. Raises KafkaError for an unknown member, or another epoch (KIP-848). A group of a type
    without offsets is treated like a missing group."""
    group = state.groups.get(request.group_id)
    if group is not None:
        try:
            group.check_offset_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            group = None
    if request.topics is None:
        topics = _everything(state, group, request.group_id, require_stable)
    else:
        topics = _named(state, group, request, require_stable)
    answer = OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)
    return answered(ticket, answer)


def _everything(
    state: GroupState, group: Group | None, group_id: str, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    offsets = state.offsets.of_group(group_id) if group is not None else NO_OFFSETS
    return [
        OffsetFetchResponseTopics(
            name=topic,
            partitions=[
                _answer(state, group_id, topic, index, offset, require_stable) for index, offset in partitions.items()
            ],
        )
        for topic, partitions in offsets.items()
    ]


def _named(
    state: GroupState, group: Group | None, request: OffsetFetchRequestGroup, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    offsets: ByTopic = state.offsets.of_group(request.group_id) if group is not None else NO_OFFSETS
    answers = []
    for topic in request.topics or ():
        committed = offsets.get(topic.name, {})
        partitions = [
            _answer(
                state, request.group_id, topic.name, index, _valid(committed.get(index), topic.topic_id), require_stable
            )
            for index in topic.partition_indexes
        ]
        answers.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return answers


def _valid(offset: Offset | None, topic_id: Uuid) -> Offset | None:
    """Returns the offset, unless it belongs to an earlier topic of this name."""
    return offset if offset is not None and offset.is_of(topic_id) else None


def _answer(
    state: GroupState, group_id: str, topic: str, index: int, offset: Offset | None, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if require_stable and state.offsets.is_pending(group_id, topic, index):
        return _none(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if offset is None:
        return _none(index, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=0,
    )


def _none(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=INVALID_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=code,
    )
