"""ReadShareGroupState (84)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.READ_SHARE_GROUP_STATE)
class ReadShareGroupStateRequest:
    """A share partition's leader reads its durable state (KIP-932)."""

    group_id: str = wire()
    topics: list[ReadStateData] = wire()


@struct
class ReadStateData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition: int32 = wire()
    leader_epoch: int32 = wire()


@message(ApiKey.READ_SHARE_GROUP_STATE)
class ReadShareGroupStateResponse:
    """Start offset and record states by share partition."""

    results: list[ReadStateResult] = wire()


@struct
class ReadStateResult:
    topic_id: uuid = wire()
    partitions: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    state_epoch: int32 = wire()
    start_offset: int64 = wire()
    state_batches: list[StateBatch] = wire()


@struct
class StateBatch:
    """A range of records. State: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    delivery_state: int8 = wire()
    delivery_count: int16 = wire()
