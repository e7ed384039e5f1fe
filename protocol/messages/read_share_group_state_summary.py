"""ReadShareGroupStateSummary (87)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY)
class ReadShareGroupStateSummaryRequest:
    """Reads the state of share partitions without their records' states (KIP-932)."""

    group_id: str = wire()
    topics: list[ReadStateSummaryData] = wire()


@struct
class ReadStateSummaryData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition: int32 = wire()
    leader_epoch: int32 = wire()


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY)
class ReadShareGroupStateSummaryResponse:
    """Epochs and start offset by share partition."""

    results: list[ReadStateSummaryResult] = wire()


@struct
class ReadStateSummaryResult:
    topic_id: uuid = wire()
    partitions: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    state_epoch: int32 = wire()
    leader_epoch: int32 = wire()
    start_offset: int64 = wire()
    delivery_complete_count: int32 = wire(versions="1+", default=-1)  # KIP-1226
