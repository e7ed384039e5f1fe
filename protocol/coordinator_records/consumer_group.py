"""Consumer groups (KIP-848) in __consumer_offsets."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int8, int32, int64, uuid


@versioned(3, versions="0")
class ConsumerGroupMetadataKey:
    """The key of a consumer group."""

    group_id: str = wire()


@versioned(3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """A consumer group's epoch, and the hash of the topics it depends on (KIP-1101)."""

    epoch: int32 = wire()
    metadata_hash: int64 = wire(tag=0, default=0)  # KIP-1101


@versioned(4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    """The key of a consumer group's topics, up to Kafka 4.0."""

    group_id: str = wire()


@versioned(4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The partitions and racks of subscribed topics; ConsumerGroupMetadataValue's hash replaces it (KIP-1101)."""

    topics: list[TopicMetadata] = wire()


@struct
class TopicMetadata:
    topic_id: uuid = wire()
    topic_name: str = wire()
    num_partitions: int32 = wire()
    partition_metadata: list[PartitionMetadata] = wire()


@struct
class PartitionMetadata:
    partition: int32 = wire()
    racks: list[str] = wire()


@versioned(5, versions="0")
class ConsumerGroupMemberMetadataKey:
    """The key of a member of a consumer group."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """A consumer group member's metadata, as the member reports it. Includes classic metadata if the member uses the
    classic protocol."""

    instance_id: str | None = wire(nullable="0+")
    rack_id: str | None = wire(nullable="0+")
    client_id: str = wire()
    client_host: str = wire()
    subscribed_topic_names: list[str] = wire()
    subscribed_topic_regex: str | None = wire(nullable="0+")
    rebalance_timeout_ms: int32 = wire(default=-1)
    server_assignor: str | None = wire(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = wire(nullable="0+", tag=0)  # left out it is empty, not null


@struct
class ClassicMemberMetadata:
    """The classic metadata of a member: its session timeout and supported protocols."""

    session_timeout_ms: int32 = wire()
    supported_protocols: list[ClassicProtocol] = wire()


@struct
class ClassicProtocol:
    name: str = wire()
    metadata: bytes = wire()


@versioned(6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The key of a consumer group's target assignment."""

    group_id: str = wire()


@versioned(6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment, and the time of its computation (KIP-1263)."""

    assignment_epoch: int32 = wire()
    assignment_timestamp: int64 = wire(tag=0, default=0)  # KIP-1263


@versioned(7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions of a member's target assignment."""

    topic_partitions: list[TopicPartitions] = wire()


@struct
class TopicPartitions:
    topic_id: uuid = wire()
    partitions: list[int32] = wire()


@versioned(8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """A member's assignment at its epoch. State: 0 stable, 1 unrevoked partitions, 2 unreleased partitions, 127
    unknown."""

    member_epoch: int32 = wire()
    previous_member_epoch: int32 = wire()
    state: int8 = wire()
    assigned_partitions: list[AssignedTopicPartitions] = wire()
    partitions_pending_revocation: list[AssignedTopicPartitions] = wire()


@struct
class AssignedTopicPartitions:
    """Partitions and the epoch at which each was assigned, which fences late commits (KIP-1251)."""

    topic_id: uuid = wire()
    partitions: list[int32] = wire()
    assignment_epochs: list[int32] | None = wire(nullable="0+", tag=0)  # left out it is empty, not null


@versioned(16, versions="0")
class ConsumerGroupRegularExpressionKey:
    """The key of a regular expression that members subscribe to."""

    group_id: str = wire()
    regular_expression: str = wire()


@versioned(16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that the expression matched, at a version of the metadata."""

    topics: list[str] = wire()
    version: int64 = wire()
    timestamp: int64 = wire()
