"""OffsetForLeaderEpoch (23)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH)
class OffsetForLeaderEpochRequest:
    """Requests the end offsets of leader epochs, to find where logs diverge (KIP-101, KIP-320)."""

    replica_id: int32 = wire(versions="3+", default=-2)  # KIP-392
    topics: list[OffsetForLeaderTopic] = wire()


@struct
class OffsetForLeaderTopic:
    topic: str = wire()
    partitions: list[OffsetForLeaderPartition] = wire()


@struct
class OffsetForLeaderPartition:
    partition: int32 = wire()
    current_leader_epoch: int32 = wire(versions="2+", default=-1)  # KIP-320
    leader_epoch: int32 = wire()


@message(ApiKey.OFFSET_FOR_LEADER_EPOCH)
class OffsetForLeaderEpochResponse:
    """The end offset of the largest epoch at or below the requested epoch."""

    throttle_time_ms: int32 = wire(versions="2+", default=0)  # KIP-320
    topics: list[OffsetForLeaderTopicResult] = wire()


@struct
class OffsetForLeaderTopicResult:
    topic: str = wire()
    partitions: list[EpochEndOffset] = wire()


@struct
class EpochEndOffset:
    """That epoch and its end offset; -1 and -1 if unknown."""

    error_code: int16 = wire()
    partition: int32 = wire()
    leader_epoch: int32 = wire(versions="1+", default=-1)  # KIP-279
    end_offset: int64 = wire(default=-1)
