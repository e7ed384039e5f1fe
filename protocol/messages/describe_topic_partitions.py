"""DescribeTopicPartitions (75)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
class DescribeTopicPartitionsRequest:
    """Pages through topics' partitions from a cursor on (KIP-966)."""

    topics: list[TopicRequest] = wire()
    response_partition_limit: int32 = wire(default=2000)
    cursor: Cursor | None = wire(nullable="0+", default=None)


@struct
class TopicRequest:
    name: str = wire()


@struct
class Cursor:
    """The first partition of the next page."""

    topic_name: str = wire()
    partition_index: int32 = wire()


@message(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
class DescribeTopicPartitionsResponse:
    """Partitions with eligible leader replicas, and the cursor of the next page."""

    throttle_time_ms: int32 = wire(default=0)
    topics: list[DescribeTopicPartitionsResponseTopic] = wire()
    next_cursor: Cursor | None = wire(nullable="0+", default=None)


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int16 = wire()
    name: str | None = wire(nullable="0+")
    topic_id: uuid = wire()
    is_internal: bool = wire(default=False)
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire()
    topic_authorized_operations: int32 = wire(default=-0x80000000)


@struct
class DescribeTopicPartitionsResponsePartition:
    """A partition. `eligible_leader_replicas` can be elected without data loss although not in sync (KIP-966)."""

    error_code: int16 = wire()
    partition_index: int32 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire(default=-1)
    replica_nodes: list[int32] = wire()
    isr_nodes: list[int32] = wire()
    eligible_leader_replicas: list[int32] | None = wire(nullable="0+", default=None)
    last_known_elr: list[int32] | None = wire(nullable="0+", default=None)
    offline_replicas: list[int32] = wire()
