"""The records of `__consumer_offsets`, with a function for each kind.

Keys, values and versions are those that Apache Kafka 4.3 writes. Source: GroupCoordinatorRecordHelpers,
CoordinatorRecordSerde.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from coordinator.engine.result import Result
from protocol.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.schema import Message
from protocol.tuples import new_tuple
from protocol.types import NO_UUID, Uuid

GROUP_METADATA_VERSION: Final = 3
OFFSET_COMMIT_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VERSION: Final = 1
"""The only version with an expire timestamp, for clients that set a retention time (OffsetCommit 2 to 4)."""

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1


class GroupRecord(NamedTuple):
    """A record, or a tombstone if it has no value; `version` is the value's. Offsets of a transaction have its
    producer."""

    key: Message
    value: Message | None = None
    version: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class EndTransaction(NamedTuple):
    """The marker that commits or aborts a producer's pending offsets, on the transaction coordinator's request."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0

    @property
    def key(self) -> EndTransaction:
        """The key by which `apply` finds its function, as for the other records."""
        return self


AnyRecord: TypeAlias = GroupRecord | EndTransaction

GroupResult: TypeAlias = Result[AnyRecord]
"""The result of decisions on groups and offsets. The decisions call `Result` itself: calling a generic alias takes
longer than most decisions."""


def classic_group(group_id: str, value: GroupMetadataValue) -> GroupRecord:
    """Returns the record of a classic group with its generation and members."""
    return GroupRecord(GroupMetadataKey(group=group_id), value, GROUP_METADATA_VERSION)


def classic_group_gone(group_id: str) -> GroupRecord:
    """Returns the tombstone of a classic group that was deleted or converted."""
    return GroupRecord(GroupMetadataKey(group=group_id))


def offset_commit(
    group_id: str,
    topic: str,
    partition: int,
    value: OffsetCommitValue,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> GroupRecord:
    """Returns the record of a partition's committed offset, which is pending until its transaction ends if it has a
    producer."""
    version = OFFSET_COMMIT_VERSION if value.expire_timestamp == NO_TIMESTAMP else EXPIRING_OFFSET_COMMIT_VERSION
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return new_tuple(GroupRecord, (key, value, version, producer_id, producer_epoch))


def offset_gone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """Returns the tombstone of a partition's committed and pending offsets."""
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def committed(
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_TIMESTAMP,
    topic_id: Uuid = NO_UUID,
) -> OffsetCommitValue:
    """Returns the value of `offset_commit`."""
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
