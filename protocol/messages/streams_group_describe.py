"""StreamsGroupDescribe (89)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uint16


@message(ApiKey.STREAMS_GROUP_DESCRIBE)
class StreamsGroupDescribeRequest:
    """Requests the state, topology and members of streams groups (KIP-1071)."""

    group_ids: list[str] = wire()
    include_authorized_operations: bool = wire()
    include_topology_description: bool = wire(versions="1+", default=False)  # KIP-1331


@message(ApiKey.STREAMS_GROUP_DESCRIBE)
class StreamsGroupDescribeResponse:
    """Epochs, topology, and members with their current and target tasks."""

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
    topology: Topology | None = wire(nullable="0+", default=None)
    members: list[Member] = wire()
    authorized_operations: int32 = wire(default=-0x80000000)
    topology_description: TopologyDescription | None = wire(versions="1+", nullable="1+", default=None)  # KIP-1331
    topology_description_status: int8 = wire(versions="1+", default=0)
    assignor_name: str | None = wire(versions="1+", nullable="1+", default=None)  # KIP-1357


@struct
class Topology:
    """The configured topology. Subtopologies are null while it is not ready."""

    epoch: int32 = wire()
    subtopologies: list[Subtopology] | None = wire(nullable="0+", default=None)


@struct
class Subtopology:
    subtopology_id: str = wire()
    source_topics: list[str] = wire()
    repartition_sink_topics: list[str] = wire()
    state_changelog_topics: list[TopicInfo] = wire()
    repartition_source_topics: list[TopicInfo] = wire()


@struct
class TopicInfo:
    """An internal topic. With 0 partitions or replicas the broker selects the number."""

    name: str = wire()
    partitions: int32 = wire()
    replication_factor: int16 = wire()
    topic_configs: list[KeyValue] = wire()


@struct
class KeyValue:
    key: str = wire()
    value: str = wire()


@struct
class Member:
    member_id: str = wire()
    member_epoch: int32 = wire()
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    client_id: str = wire()
    client_host: str = wire()
    topology_epoch: int32 = wire()
    process_id: str = wire()
    user_endpoint: Endpoint | None = wire(nullable="0+", default=None)
    client_tags: list[KeyValue] = wire()
    task_offsets: list[TaskOffset] = wire()
    task_end_offsets: list[TaskOffset] = wire()
    assignment: Assignment = wire()
    target_assignment: Assignment = wire()
    is_classic: bool = wire()


@struct
class Endpoint:
    host: str = wire()
    port: uint16 = wire()


@struct
class TaskOffset:
    subtopology_id: str = wire()
    partition: int32 = wire()
    offset: int64 = wire()


@struct
class Assignment:
    """A member's active, standby and warm-up tasks."""

    active_tasks: list[TaskIds] = wire()
    standby_tasks: list[TaskIds] = wire()
    warmup_tasks: list[TaskIds] = wire()


@struct
class TaskIds:
    subtopology_id: str = wire()
    partitions: list[int32] = wire()


@struct
class TopologyDescription:
    """The topology's nodes and stores, which only a broker with Kafka's description plugin has."""

    subtopologies: list[TopologyDescriptionSubtopology] = wire()
    global_stores: list[TopologyDescriptionGlobalStore] = wire()


@struct
class TopologyDescriptionSubtopology:
    subtopology_id: str = wire()
    nodes: list[TopologyDescriptionNode] = wire()


@struct
class TopologyDescriptionNode:
    """A node. Type: 1 source, 2 processor, 3 sink. A null sink topic is selected for each record."""

    name: str = wire()
    node_type: int8 = wire()
    source_topics: list[str] = wire()
    sink_topic: str | None = wire(nullable="1+", default=None)
    stores: list[str] = wire()
    successors: list[str] = wire()


@struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = wire()
    processor: TopologyDescriptionNode = wire()
