"""OffsetFetch (9)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.OFFSET_FETCH)
class OffsetFetchRequest:
    """Requests groups' committed offsets. Null topics request all."""

    group_id: str = wire(versions="0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = wire(versions="0-7", nullable="2-7", default=None)
    groups: list[OffsetFetchRequestGroup] = wire(versions="8+", default=IMPLICIT)  # KIP-709
    require_stable: bool = wire(versions="7+", default=False)  # KIP-447


@struct
class OffsetFetchRequestTopic:
    name: str = wire()
    partition_indexes: list[int32] = wire()


@struct
class OffsetFetchRequestGroup:
    """A group. Member id and epoch are checked for consumer groups; null topics request all."""

    group_id: str = wire()
    member_id: str | None = wire(versions="9+", nullable="9+", default=None)  # KIP-848
    member_epoch: int32 = wire(versions="9+", default=-1)  # KIP-848
    topics: list[OffsetFetchRequestTopics] | None = wire(nullable="0+")


@struct
class OffsetFetchRequestTopics:
    name: str = wire(versions="8-9", default="")
    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-848
    partition_indexes: list[int32] = wire()


@message(ApiKey.OFFSET_FETCH)
class OffsetFetchResponse:
    """Committed offsets by group, topic and partition."""

    throttle_time_ms: int32 = wire(versions="3+", default=0)  # KIP-124
    topics: list[OffsetFetchResponseTopic] = wire(versions="0-7", default=IMPLICIT)
    error_code: int16 = wire(versions="2-7", default=0)  # KIP-88
    groups: list[OffsetFetchResponseGroup] = wire(versions="8+", default=IMPLICIT)  # KIP-709


@struct
class OffsetFetchResponseTopic:
    name: str = wire()
    partitions: list[OffsetFetchResponsePartition] = wire()


@struct
class OffsetFetchResponsePartition:
    """The next offset to read, or -1 without a committed offset."""

    partition_index: int32 = wire()
    committed_offset: int64 = wire()
    committed_leader_epoch: int32 = wire(versions="5-7", default=-1)  # KIP-320
    metadata: str | None = wire(nullable="0+")
    error_code: int16 = wire()


@struct
class OffsetFetchResponseGroup:
    group_id: str = wire()
    topics: list[OffsetFetchResponseTopics] = wire()
    error_code: int16 = wire(default=0)


@struct
class OffsetFetchResponseTopics:
    name: str = wire(versions="8-9", default="")
    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-848
    partitions: list[OffsetFetchResponsePartitions] = wire()


@struct
class OffsetFetchResponsePartitions:
    """The next offset to read, or -1 without a committed offset."""

    partition_index: int32 = wire()
    committed_offset: int64 = wire()
    committed_leader_epoch: int32 = wire(default=-1)
    metadata: str | None = wire(nullable="0+")
    error_code: int16 = wire()
