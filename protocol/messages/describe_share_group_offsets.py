"""DescribeShareGroupOffsets (90)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
class DescribeShareGroupOffsetsRequest:
    """Requests the start offsets of share partitions. Null topics request all (KIP-932)."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = wire()


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = wire()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = wire(nullable="0+")


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = wire()
    partitions: list[int32] = wire()


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
class DescribeShareGroupOffsetsResponse:
    """Start offset and leader epoch by share partition."""

    throttle_time_ms: int32 = wire(default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = wire()


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = wire()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = wire()
    topic_id: uuid = wire()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = wire()


@struct
class DescribeShareGroupOffsetsResponsePartition:
    """A share partition. -1 means a start offset that is not initialized, or an unknown lag."""

    partition_index: int32 = wire()
    start_offset: int64 = wire()
    leader_epoch: int32 = wire()
    lag: int64 = wire(versions="1+", default=-1)  # KIP-1226
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
