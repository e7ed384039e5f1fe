"""WriteShareGroupState (85)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.WRITE_SHARE_GROUP_STATE)
class WriteShareGroupStateRequest:
    """A share partition's leader writes changes to the partition's state (KIP-932)."""

    group_id: str = wire()
    topics: list[WriteStateData] = wire()


@struct
class WriteStateData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """Changes to a share partition. Start offset -1 means no change."""

    partition: int32 = wire()
    state_epoch: int32 = wire()
    leader_epoch: int32 = wire()
    start_offset: int64 = wire()
    delivery_complete_count: int32 = wire(versions="1+", default=-1)  # KIP-1226
    state_batches: list[StateBatch] = wire()


@struct
class StateBatch:
    """A range of records. State: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    delivery_state: int8 = wire()
    delivery_count: int16 = wire()


@message(ApiKey.WRITE_SHARE_GROUP_STATE)
class WriteShareGroupStateResponse:
    """The error code for each share partition."""

    results: list[WriteStateResult] = wire()


@struct
class WriteStateResult:
    topic_id: uuid = wire()
    partitions: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
