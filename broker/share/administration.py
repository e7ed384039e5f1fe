"""Administration of share groups: describes, alters and deletes offsets, and deletes the state of deleted groups.

Source: GroupCoordinatorService (KIP-932, KIP-1226).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.request.eager import Waiting, begin
from broker.shards.high_watermarks import high_watermark
from broker.shards.translations import seen_by_client
from broker.share.initializing import initialize
from broker.share.state_operations import DeleteState, ReadSummary
from coordinator.group.share.initialization import Initialize
from coordinator.group.share.offsets import Deletion, begin_delete_all, deleted
from coordinator.group.share.topics import Partitions
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.shard import NO_COUNT, Summary
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid

if TYPE_CHECKING:
    from broker.share.groups import ShareGroups

UNKNOWN_LAG: Final = -1

DESCRIBE_TIMEOUT_S: Final = 5
"""Time for the description of a share partition: a frozen broker must not hide all others until the client gives up.
Apache Kafka waits 30 s for each attempt, as long as its clients."""


class OffsetDescription(NamedTuple):
    """The offsets of a share partition, as DescribeShareGroupOffsets answers them."""

    start_offset: int = NO_START_OFFSET
    leader_epoch: int = 0
    lag: int = UNKNOWN_LAG
    error: KafkaError | None = None


async def describe_offset(groups: ShareGroups, key: ShareKey) -> OffsetDescription:
    """Returns a share partition's start offset, leader epoch and lag, or the error of its state;
    COORDINATOR_NOT_AVAILABLE if they are not known within DESCRIBE_TIMEOUT_S."""
    begun = begin(_describe(groups, key))
    if not isinstance(begun, Waiting):
        return begun
    description = asyncio.ensure_future(begun)
    try:
        done, _ = await asyncio.wait((description,), timeout=DESCRIBE_TIMEOUT_S)
    finally:
        description.cancel()
    if done:
        return description.result()
    message = f"the share coordinator or the leader did not answer within {DESCRIBE_TIMEOUT_S} s"
    return OffsetDescription(error=KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message))


async def _describe(groups: ShareGroups, key: ShareKey) -> OffsetDescription:
    try:
        state = await groups.persister.submit(ReadSummary(key))
    except KafkaError as error:
        return OffsetDescription(error=seen_by_client(error))
    try:
        return OffsetDescription(state.start_offset, state.leader_epoch, await lag(groups, key, state))
    except KafkaError as error:
        return OffsetDescription(error=error.detached())


async def lag(groups: ShareGroups, key: ShareKey, state: Summary) -> int:
    """Returns the number of committed records whose delivery isn't complete; UNKNOWN_LAG if it is unknown. Raises the
    KafkaError of the partition's leader."""
    if state.start_offset == NO_START_OFFSET or state.delivery_complete_count == NO_COUNT:
        return UNKNOWN_LAG
    topic = groups.environment.replicas.name_of(key.topic_id)
    if topic is None:
        return UNKNOWN_LAG
    end = await high_watermark(groups.environment, TopicPartition(topic, key.partition))
    return end - state.start_offset - state.delivery_complete_count


async def alter(groups: ShareGroups, initialization: Initialize) -> Mapping[ShareKey, KafkaError]:
    """Initializes the state of share partitions again, and returns the errors."""
    if not any(initialization.offsets.values()):
        return {}
    groups.forget_group(initialization.group_id)
    return await initialize(groups.persister, groups.coordinator, initialization)


async def delete_state(groups: ShareGroups, group_id: str, partitions: Partitions) -> dict[Uuid, KafkaError]:
    """Deletes the state of share partitions, and returns the errors by topic."""
    if not partitions:
        return {}
    groups.forget_group(group_id)
    keys = [ShareKey(group_id, topic_id, index) for topic_id, indexes in partitions.items() for index in indexes]
    results = await asyncio.gather(*(groups.persister.submit(DeleteState(key)) for key in keys), return_exceptions=True)
    failed: dict[Uuid, KafkaError] = {}
    for key, result in zip(keys, results, strict=True):
        if isinstance(result, KafkaError):
            failed[key.topic_id] = seen_by_client(result)
        elif result is not None:
            raise result
    return failed


async def finish_delete(groups: ShareGroups, group_id: str, deletion: Deletion) -> dict[Uuid, KafkaError]:
    """Deletes the state, also from the group's metadata, and returns the errors by topic."""
    failed = await delete_state(groups, group_id, deletion.partitions)
    deleted_topics = frozenset(deletion.partitions.keys() - failed.keys())
    if deleted_topics:
        await groups.coordinator.submit(group_id, deleted, group_id, deleted_topics)
    return failed


async def delete_group_state(groups: ShareGroups, group_id: str) -> None:
    """Deletes all state of a group that will be deleted, if it is a share group without members. Raises KafkaError."""
    deletion = await groups.coordinator.submit(group_id, begin_delete_all, group_id, None)
    failed = await delete_state(groups, group_id, deletion.partitions)
    for error in failed.values():
        raise error
