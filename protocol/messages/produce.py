"""Produce (0)."""

from __future__ import annotations

from protocol import types
from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.PRODUCE)
class ProduceRequest:
    """Record batches to append, by topic and partition. `acks` selects the replicas that must have them before the
    response."""

    transactional_id: str | None = wire(versions="3+", nullable="3+", default=None)  # KIP-98
    acks: int16 = wire()
    timeout_ms: int32 = wire()
    topic_data: list[TopicProduceData] = wire()


@struct
class TopicProduceData:
    name: str = wire(versions="0-12", default="")
    topic_id: uuid = wire(versions="13+", default=IMPLICIT)  # KIP-516
    partition_data: list[PartitionProduceData] = wire()


@struct
class PartitionProduceData:
    """Batches for a partition, exactly one since version 3."""

    index: int32 = wire()
    records: types.records | None = wire(nullable="0+")


@message(ApiKey.PRODUCE)
class ProduceResponse:
    """Each partition's base offset, or its error."""

    responses: list[TopicProduceResponse] = wire()
    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-13
    node_endpoints: list[NodeEndpoint] = wire(versions="10+", tag=0, default=IMPLICIT)  # KIP-951


@struct
class TopicProduceResponse:
    name: str = wire(versions="0-12", default="")
    topic_id: uuid = wire(versions="13+", default=IMPLICIT)  # KIP-516
    partition_responses: list[PartitionProduceResponse] = wire()


@struct
class PartitionProduceResponse:
    """The base offset of the append. The append time is -1 unless the topic uses LogAppendTime."""

    index: int32 = wire()
    error_code: int16 = wire()
    base_offset: int64 = wire()
    log_append_time_ms: int64 = wire(versions="2+", default=-1)  # KIP-32
    log_start_offset: int64 = wire(versions="5+", default=-1)  # KIP-107
    record_errors: list[BatchIndexAndErrorMessage] = wire(versions="8+", default=IMPLICIT)  # KIP-467
    error_message: str | None = wire(versions="8+", nullable="8+", default=None)  # KIP-467
    current_leader: LeaderIdAndEpoch = wire(versions="10+", tag=0, default=IMPLICIT)  # KIP-951


@struct
class BatchIndexAndErrorMessage:
    """A record that made the broker reject the batch."""

    batch_index: int32 = wire()
    batch_index_error_message: str | None = wire(nullable="0+", default=None)


@struct
class LeaderIdAndEpoch:
    """The leader and its epoch that this broker knows; -1 if unknown."""

    leader_id: int32 = wire(default=-1)
    leader_epoch: int32 = wire(default=-1)


@struct
class NodeEndpoint:
    """The endpoint of a leader that the partitions name."""

    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(nullable="0+", default=None)
