"""Share groups (KIP-932) in __consumer_offsets."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int8, int32, int64, uuid


@versioned(11, versions="0")
class ShareGroupMetadataKey:
    """The key of a share group."""

    group_id: str = wire()


@versioned(11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """A share group's epoch, and the hash of the topics it depends on (KIP-1101)."""

    epoch: int32 = wire()
    metadata_hash: int64 = wire()


@versioned(10, versions="0")
class ShareGroupMemberMetadataKey:
    """The key of a member of a share group."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """A share group member's metadata, as the member reports it."""

    rack_id: str | None = wire(nullable="0+")
    client_id: str = wire()
    client_host: str = wire()
    subscribed_topic_names: list[str] = wire()


@versioned(12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    """The key of a share group's target assignment."""

    group_id: str = wire()


@versioned(12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment, and the time of its computation (KIP-1263)."""

    assignment_epoch: int32 = wire()
    assignment_timestamp: int64 = wire(tag=0, default=0)  # KIP-1263


@versioned(13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The partitions of a member's target assignment."""

    topic_partitions: list[TopicPartitions] = wire()


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    partitions: list[int32] = wire()


@versioned(14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """A member's assignment at its epoch."""

    member_epoch: int32 = wire()
    previous_member_epoch: int32 = wire()
    state: int8 = wire()
    assigned_partitions: list[TopicPartitions] = wire()


@versioned(15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    """The key of a share group's partitions with state."""

    group_id: str = wire()


@versioned(15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """The share partitions whose state is being initialized, is initialized, or is being deleted."""

    initializing_topics: list[TopicPartitionsInfo] = wire()
    initialized_topics: list[TopicPartitionsInfo] = wire()
    deleting_topics: list[TopicInfo] = wire()


@struct
class TopicPartitionsInfo:
    topic_id: uuid = wire()
    topic_name: str = wire()
    partitions: list[int32] = wire()


@struct
class TopicInfo:
    topic_id: uuid = wire()
    topic_name: str = wire()
