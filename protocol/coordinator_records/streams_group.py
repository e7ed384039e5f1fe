"""Streams groups (KIP-1071) in __consumer_offsets."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int8, int16, int32, int64, uint16


@versioned(17, versions="0")
class StreamsGroupMetadataKey:
    """The key of a streams group."""

    group_id: str = wire()


@versioned(17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """A streams group's epoch, the hash of its topics, and the configs of its last assignment."""

    epoch: int32 = wire()
    metadata_hash: int64 = wire()
    validated_topology_epoch: int32 = wire(tag=0, default=-1)
    last_assignment_configs: list[LastAssignmentConfig] | None = wire(nullable="0+", tag=1, default=None)
    stored_description_topology_epoch: int32 = wire(tag=2, default=-1)  # KIP-1331
    failed_description_topology_epoch: int32 = wire(tag=3, default=-1)


@struct
class LastAssignmentConfig:
    key: str = wire()
    value: str = wire()


@versioned(19, versions="0")
class StreamsGroupMemberMetadataKey:
    """The key of a member of a streams group."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """A streams group member's metadata, as the member reports it."""

    instance_id: str | None = wire(nullable="0+")
    rack_id: str | None = wire(nullable="0+")
    client_id: str = wire()
    client_host: str = wire()
    rebalance_timeout_ms: int32 = wire(default=-1)
    topology_epoch: int32 = wire()
    process_id: str = wire()
    user_endpoint: Endpoint | None = wire(nullable="0+", default=None)
    client_tags: list[KeyValue] = wire()


@struct
class Endpoint:
    host: str = wire()
    port: uint16 = wire()


@struct
class KeyValue:
    key: str = wire()
    value: str = wire()


@versioned(20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey:
    """The key of a streams group's target assignment."""

    group_id: str = wire()


@versioned(20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment, and the time of its computation (KIP-1263)."""

    assignment_epoch: int32 = wire()
    assignment_timestamp: int64 = wire(tag=0, default=0)  # KIP-1263


@versioned(21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """The partitions of a member's target assignment."""

    active_tasks: list[TaskIds] = wire()
    standby_tasks: list[TaskIds] = wire()
    warmup_tasks: list[TaskIds] = wire()


@struct
class TaskIds:
    """Tasks: one per partition of a subtopology."""

    subtopology_id: str = wire()
    partitions: list[int32] = wire()


@versioned(22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group_id: str = wire()
    member_id: str = wire()


@versioned(22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """A member's assignment at its epoch."""

    member_epoch: int32 = wire()
    previous_member_epoch: int32 = wire()
    state: int8 = wire()
    active_tasks: list[CurrentTaskIds] = wire()
    standby_tasks: list[CurrentTaskIds] = wire()
    warmup_tasks: list[CurrentTaskIds] = wire()
    active_tasks_pending_revocation: list[CurrentTaskIds] = wire()
    standby_tasks_pending_revocation: list[CurrentTaskIds] = wire()
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = wire()


@struct
class CurrentTaskIds:
    subtopology_id: str = wire()
    partitions: list[int32] = wire()
    assignment_epochs: list[int32] | None = wire(nullable="0+", tag=0)  # left out it is empty, not null


@versioned(23, versions="0")
class StreamsGroupTopologyKey:
    """The key of a streams group's topology."""

    group_id: str = wire()


@versioned(23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """A streams group's topology, as its first member described it."""

    epoch: int32 = wire()
    subtopologies: list[Subtopology] = wire()


@struct
class Subtopology:
    subtopology_id: str = wire()
    source_topics: list[str] = wire()
    source_topic_regex: list[str] = wire()
    state_changelog_topics: list[TopicInfo] = wire()
    repartition_sink_topics: list[str] = wire()
    repartition_source_topics: list[TopicInfo] = wire()
    copartition_groups: list[CopartitionGroup] = wire()


@struct
class TopicInfo:
    name: str = wire()
    partitions: int32 = wire()
    replication_factor: int16 = wire()
    topic_configs: list[TopicConfig] = wire()


@struct
class TopicConfig:
    key: str = wire()
    value: str = wire()


@struct
class CopartitionGroup:
    """Topics that need equal partition counts, as indexes into the subtopology's lists."""

    source_topics: list[int16] = wire()
    source_topic_regex: list[int16] = wire()
    repartition_source_topics: list[int16] = wire()
