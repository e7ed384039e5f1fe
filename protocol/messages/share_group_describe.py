"""ShareGroupDescribe (77)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.SHARE_GROUP_DESCRIBE)
class ShareGroupDescribeRequest:
    """Requests the state and members of share groups (KIP-932)."""

    group_ids: list[str] = wire()
    include_authorized_operations: bool = wire()


@message(ApiKey.SHARE_GROUP_DESCRIBE)
class ShareGroupDescribeResponse:
    """Epochs, assignor and members with their assignments."""

    throttle_time_ms: int32 = wire(default=0)
    groups: list[DescribedGroup] = wire()


@struct
class DescribedGroup:
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    group_id: str = wire()
    group_state: str = wire()
    group_epoch: int32 = wire()
    assignment_epoch: int32 = wire()
    assignor_name: str = wire()
    members: list[Member] = wire()
    authorized_operations: int32 = wire(default=-0x80000000)


@struct
class Member:
    member_id: str = wire()
    rack_id: str | None = wire(nullable="0+", default=None)
    member_epoch: int32 = wire()
    client_id: str = wire()
    client_host: str = wire()
    subscribed_topic_names: list[str] = wire()
    assignment: Assignment = wire()


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = wire()


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    topic_name: str = wire()
    partitions: list[int32] = wire()
