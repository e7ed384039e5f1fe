"""ConsumerGroupDescribe (69)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, uuid


@message(ApiKey.CONSUMER_GROUP_DESCRIBE)
class ConsumerGroupDescribeRequest:
    """Requests the state and members of consumer groups (KIP-848)."""

    group_ids: list[str] = wire()
    include_authorized_operations: bool = wire()


@message(ApiKey.CONSUMER_GROUP_DESCRIBE)
class ConsumerGroupDescribeResponse:
    """Epochs, assignor, members and their current and target assignments."""

    throttle_time_ms: int32 = wire(default=0)
    groups: list[DescribedGroup] = wire()


@struct
class DescribedGroup:
    """A group. Its authorized operations are bits by ACL code, or the smallest int32 if not requested."""

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
    """A member. Type: -1 unknown, 0 classic, 1 consumer."""

    member_id: str = wire()
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    member_epoch: int32 = wire()
    client_id: str = wire()
    client_host: str = wire()
    subscribed_topic_names: list[str] = wire()
    subscribed_topic_regex: str | None = wire(nullable="0+", default=None)
    assignment: Assignment = wire()
    target_assignment: Assignment = wire()
    member_type: int8 = wire(versions="1+", default=-1)  # KIP-1099


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = wire()


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    topic_name: str = wire()
    partitions: list[int32] = wire()
