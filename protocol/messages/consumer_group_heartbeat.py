"""ConsumerGroupHeartbeat (68)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT)
class ConsumerGroupHeartbeatRequest:
    """A heartbeat of a consumer group's member, which also joins, leaves, and reports changes (KIP-848)."""

    group_id: str = wire()
    member_id: str = wire()
    member_epoch: int32 = wire()
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    rebalance_timeout_ms: int32 = wire(default=-1)
    subscribed_topic_names: list[str] | None = wire(nullable="0+", default=None)
    subscribed_topic_regex: str | None = wire(versions="1+", nullable="1+", default=None)  # KIP-848
    server_assignor: str | None = wire(nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = wire(nullable="0+", default=None)


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    partitions: list[int32] = wire()


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment if it changed."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+", default=None)
    member_epoch: int32 = wire()
    heartbeat_interval_ms: int32 = wire()
    assignment: Assignment | None = wire(nullable="0+", default=None)


@struct
class Assignment:
    """The partitions that the member may own from this epoch on."""

    topic_partitions: list[TopicPartitions] = wire()
