"""AlterShareGroupOffsets (91)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
class AlterShareGroupOffsetsRequest:
    """Sets the start offsets of an empty share group's partitions (KIP-932)."""

    group_id: str = wire()
    topics: list[AlterShareGroupOffsetsRequestTopic] = wire()


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = wire()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = wire()


@struct
class AlterShareGroupOffsetsRequestPartition:
    """The new start offset of a share partition."""

    partition_index: int32 = wire()
    start_offset: int64 = wire()


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
class AlterShareGroupOffsetsResponse:
    """The error code for each share partition."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = wire()


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = wire()
    topic_id: uuid = wire()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = wire()


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
