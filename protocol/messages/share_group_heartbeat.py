"""ShareGroupHeartbeat (76)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.SHARE_GROUP_HEARTBEAT)
class ShareGroupHeartbeatRequest:
    """A heartbeat of a share group's member, which also joins, leaves and subscribes (KIP-932)."""

    group_id: str = wire()
    member_id: str = wire()
    member_epoch: int32 = wire()
    rack_id: str | None = wire(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = wire(nullable="0+", default=None)


@message(ApiKey.SHARE_GROUP_HEARTBEAT)
class ShareGroupHeartbeatResponse:
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
    topic_partitions: list[TopicPartitions] = wire()


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    partitions: list[int32] = wire()
