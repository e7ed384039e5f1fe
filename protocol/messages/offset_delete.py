"""OffsetDelete (47)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.OFFSET_DELETE)
class OffsetDeleteRequest:
    """Deletes a group's committed offsets of topics that it does not subscribe to (KIP-496)."""

    group_id: str = wire()
    topics: list[OffsetDeleteRequestTopic] = wire()


@struct
class OffsetDeleteRequestTopic:
    name: str = wire()
    partitions: list[OffsetDeleteRequestPartition] = wire()


@struct
class OffsetDeleteRequestPartition:
    partition_index: int32 = wire()


@message(ApiKey.OFFSET_DELETE)
class OffsetDeleteResponse:
    """The error code for each partition."""

    error_code: int16 = wire()
    throttle_time_ms: int32 = wire(default=0)
    topics: list[OffsetDeleteResponseTopic] = wire()


@struct
class OffsetDeleteResponseTopic:
    name: str = wire()
    partitions: list[OffsetDeleteResponsePartition] = wire()


@struct
class OffsetDeleteResponsePartition:
    partition_index: int32 = wire()
    error_code: int16 = wire()
