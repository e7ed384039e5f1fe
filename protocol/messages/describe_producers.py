"""DescribeProducers (61)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.DESCRIBE_PRODUCERS)
class DescribeProducersRequest:
    """Requests the active producers of partitions from their leaders (KIP-664)."""

    topics: list[TopicRequest] = wire()


@struct
class TopicRequest:
    name: str = wire()
    partition_indexes: list[int32] = wire()


@message(ApiKey.DESCRIBE_PRODUCERS)
class DescribeProducersResponse:
    """Producer state by partition, with the start of an open transaction."""

    throttle_time_ms: int32 = wire(default=0)
    topics: list[TopicResponse] = wire()


@struct
class TopicResponse:
    name: str = wire()
    partitions: list[PartitionResponse] = wire()


@struct
class PartitionResponse:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    active_producers: list[ProducerState] = wire()


@struct
class ProducerState:
    """An idempotent producer. Timestamp, epoch and offset are -1 for none."""

    producer_id: int64 = wire()
    producer_epoch: int32 = wire()
    last_sequence: int32 = wire(default=-1)
    last_timestamp: int64 = wire(default=-1)
    coordinator_epoch: int32 = wire()
    current_txn_start_offset: int64 = wire(default=-1)
