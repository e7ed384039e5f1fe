"""OffsetCommit (8)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.OFFSET_COMMIT)
class OffsetCommitRequest:
    """A group's member, or a consumer outside of group management, commits offsets."""

    group_id: str = wire()
    generation_id_or_member_epoch: int32 = wire(versions="1+", default=-1)
    member_id: str = wire(versions="1+", default="")
    group_instance_id: str | None = wire(versions="7+", nullable="7+", default=None)  # KIP-345
    retention_time_ms: int64 = wire(versions="2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = wire()


@struct
class OffsetCommitRequestTopic:
    name: str = wire(versions="0-9", default="")
    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-848
    partitions: list[OffsetCommitRequestPartition] = wire()


@struct
class OffsetCommitRequestPartition:
    """The next offset to read, and the client's metadata text."""

    partition_index: int32 = wire()
    committed_offset: int64 = wire()
    committed_leader_epoch: int32 = wire(versions="6+", default=-1)  # KIP-320
    commit_timestamp: int64 = wire(versions="1", default=-1)
    committed_metadata: str | None = wire(nullable="0+")


@message(ApiKey.OFFSET_COMMIT)
class OffsetCommitResponse:
    """The error code for each partition."""

    throttle_time_ms: int32 = wire(versions="3+", default=0)  # KIP-124
    topics: list[OffsetCommitResponseTopic] = wire()


@struct
class OffsetCommitResponseTopic:
    name: str = wire(versions="0-9", default="")
    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-848
    partitions: list[OffsetCommitResponsePartition] = wire()


@struct
class OffsetCommitResponsePartition:
    partition_index: int32 = wire()
    error_code: int16 = wire()
