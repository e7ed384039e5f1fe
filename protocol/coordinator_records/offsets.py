"""Committed offsets in __consumer_offsets."""

from __future__ import annotations

from protocol.schema import IMPLICIT, versioned, wire
from protocol.types import int32, int64, uuid


@versioned(1, versions="0")
class OffsetCommitKey:
    """The key of a group's committed offset of a partition."""

    group: str = wire()
    topic: str = wire()
    partition: int32 = wire()


@versioned(1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """The next offset to read. Without an expire timestamp (-1) it expires by the group's retention."""

    offset: int64 = wire()
    leader_epoch: int32 = wire(versions="3+", default=-1)  # KIP-320
    metadata: str = wire()
    commit_timestamp: int64 = wire()
    expire_timestamp: int64 = wire(versions="1", default=-1)
    topic_id: uuid = wire(versions="4+", tag=0, default=IMPLICIT)  # KIP-848


@versioned(0, versions="0")
class LegacyOffsetCommitKey:
    """The key of a committed offset in the format of Kafka 0.8."""

    group: str = wire()
    topic: str = wire()
    partition: int32 = wire()


@versioned(0, versions="0")
class LegacyOffsetCommitValue:
    """A committed offset in the format of Kafka 0.8."""

    offset: int64 = wire()
    metadata: str = wire()
    commit_timestamp: int64 = wire()
