"""The records of `__consumer_offsets`: one function for each fact, and the batches that hold them.

Keys, values and their versions are those that Apache Kafka 4.3 writes. Source: GroupCoordinatorRecordHelpers,
CoordinatorRecordSerde.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from coordinator.outcome import Outcome
from protocol.coordinator_records.classic_group import GroupMetadataKey, GroupMetadataValue
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.schema import Message
from protocol.types import NO_UUID, Uuid

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much

GROUP_METADATA_VERSION: Final = 3
OFFSET_COMMIT_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VERSION: Final = 1
"""The one version that has an expire timestamp, for clients that name a retention time (OffsetCommit 2 to 4)."""

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1


class GroupRecord(NamedTuple):
    """A fact, or with no value that it is one no more; `version` is the value's. Offsets of a transaction have its
    producer."""

    key: Message
    value: Message | None = None
    version: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class EndTransaction(NamedTuple):
    """The marker that commits or aborts a producer's pending offsets; the transaction coordinator has it written."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0

    @property
    def key(self) -> EndTransaction:
        """The key that `apply` is looked up by, as for the other records."""
        return self


AnyRecord: TypeAlias = GroupRecord | EndTransaction

GroupOutcome: TypeAlias = Outcome[AnyRecord]
"""The outcome of decisions on groups and offsets. They call `Outcome`: a generic alias takes longer than most of
them."""


def classic_group(group_id: str, value: GroupMetadataValue) -> GroupRecord:
    """A classic group with its generation and members."""
    return GroupRecord(GroupMetadataKey(group=group_id), value, GROUP_METADATA_VERSION)


def classic_group_gone(group_id: str) -> GroupRecord:
    """A classic group was deleted, or became one of another type."""
    return GroupRecord(GroupMetadataKey(group=group_id))


def offset_commit(
    group_id: str,
    topic: str,
    partition: int,
    value: OffsetCommitValue,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> GroupRecord:
    """The committed offset of a partition; pending until its transaction ends where it has a producer."""
    version = OFFSET_COMMIT_VERSION if value.expire_timestamp == NO_TIMESTAMP else EXPIRING_OFFSET_COMMIT_VERSION
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _new(GroupRecord, (key, value, version, producer_id, producer_epoch))


def offset_gone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """A committed offset was deleted or expired, pending ones of the partition with it."""
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def committed(
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_TIMESTAMP,
    topic_id: Uuid = NO_UUID,
) -> OffsetCommitValue:
    """The value of `offset_commit`."""
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp_ms,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
