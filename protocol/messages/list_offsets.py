"""ListOffsets (2)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, int64


@message(ApiKey.LIST_OFFSETS)
class ListOffsetsRequest:
    """Requests each partition's first offset at or after a timestamp, or a special offset."""

    replica_id: int32 = wire()
    isolation_level: int8 = wire(versions="2+", default=0)  # KIP-98
    topics: list[ListOffsetsTopic] = wire()
    timeout_ms: int32 = wire(versions="10+", default=0)  # KIP-1075


@struct
class ListOffsetsTopic:
    name: str = wire()
    partitions: list[ListOffsetsPartition] = wire()


@struct
class ListOffsetsPartition:
    """A timestamp, or -1 latest, -2 earliest, -3 max timestamp, -4 earliest local, -5 latest tiered, -6 earliest
    pending upload."""

    partition_index: int32 = wire()
    current_leader_epoch: int32 = wire(versions="4+", default=-1)  # KIP-320
    timestamp: int64 = wire()
    max_num_offsets: int32 = wire(versions="0", default=1)


@message(ApiKey.LIST_OFFSETS)
class ListOffsetsResponse:
    """The offset and timestamp for each partition; a list of offsets in version 0."""

    throttle_time_ms: int32 = wire(versions="2+", default=0)  # KIP-98
    topics: list[ListOffsetsTopicResponse] = wire()


@struct
class ListOffsetsTopicResponse:
    name: str = wire()
    partitions: list[ListOffsetsPartitionResponse] = wire()


@struct
class ListOffsetsPartitionResponse:
    """The offset; -1 with timestamp -1 if no record has the timestamp or a later one."""

    partition_index: int32 = wire()
    error_code: int16 = wire()
    old_style_offsets: list[int64] = wire(versions="0", default=IMPLICIT)
    timestamp: int64 = wire(versions="1+", default=-1)  # KIP-79
    offset: int64 = wire(versions="1+", default=-1)  # KIP-79
    leader_epoch: int32 = wire(versions="4+", default=-1)  # KIP-320
