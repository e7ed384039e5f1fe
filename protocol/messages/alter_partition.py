"""AlterPartition (56). Versions 0 and 1, which name topics, are sent only by brokers that are too old for Kafka 4."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.ALTER_PARTITION)
class AlterPartitionRequest:
    """A leader asks the controller to change a partition's in-sync replicas (KIP-497, KIP-841)."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)
    topics: list[TopicData] = wire()


@struct
class TopicData:
    topic_id: uuid = wire()  # KIP-841
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """A partition's in-sync replicas, and the partition epoch."""

    partition_index: int32 = wire()
    leader_epoch: int32 = wire()
    new_isr: list[int32] = wire(versions="2", default=IMPLICIT)
    new_isr_with_epochs: list[BrokerState] = wire(versions="3+", default=IMPLICIT)  # KIP-903
    leader_recovery_state: int8 = wire(default=0)  # KIP-704
    partition_epoch: int32 = wire()


@struct
class BrokerState:
    """An in-sync replica, and the broker epoch of its last fetch; -1 skips the check."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)


@message(ApiKey.ALTER_PARTITION)
class AlterPartitionResponse:
    """The partitions' state after the change."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    topics: list[ResponseTopicData] = wire()


@struct
class ResponseTopicData:
    topic_id: uuid = wire()  # KIP-841
    partitions: list[ResponsePartitionData] = wire()


@struct
class ResponsePartitionData:
    """A partition's in-sync replicas, and the partition epoch."""

    partition_index: int32 = wire()
    error_code: int16 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()
    isr: list[int32] = wire()
    leader_recovery_state: int8 = wire(default=0)  # KIP-704
    partition_epoch: int32 = wire()
