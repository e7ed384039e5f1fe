"""StreamsGroupHeartbeat (88)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uint16


@message(ApiKey.STREAMS_GROUP_HEARTBEAT)
class StreamsGroupHeartbeatRequest:
    """A heartbeat of a Kafka Streams client, which also joins, leaves, and reports changes (KIP-1071)."""

    group_id: str = wire()
    member_id: str = wire()
    member_epoch: int32 = wire()
    endpoint_information_epoch: int32 = wire()
    instance_id: str | None = wire(nullable="0+", default=None)
    rack_id: str | None = wire(nullable="0+", default=None)
    rebalance_timeout_ms: int32 = wire(default=-1)
    topology: Topology | None = wire(nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    process_id: str | None = wire(nullable="0+", default=None)
    user_endpoint: Endpoint | None = wire(nullable="0+", default=None)
    client_tags: list[KeyValue] | None = wire(nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = wire(nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = wire(nullable="0+", default=None)
    shutdown_application: bool = wire(default=False)


@struct
class Topology:
    """The application's topology, sent on joining."""

    epoch: int32 = wire()
    subtopologies: list[Subtopology] = wire()


@struct
class Subtopology:
    """A connected part of the topology: its source, repartition and changelog topics."""

    subtopology_id: str = wire()
    source_topics: list[str] = wire()
    source_topic_regex: list[str] = wire()
    state_changelog_topics: list[TopicInfo] = wire()
    repartition_sink_topics: list[str] = wire()
    repartition_source_topics: list[TopicInfo] = wire()
    copartition_groups: list[CopartitionGroup] = wire()


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
class CopartitionGroup:
    """Topics that need equal partition counts, as indexes into the subtopology's lists."""

    source_topics: list[int16] = wire()
    source_topic_regex: list[int16] = wire()
    repartition_source_topics: list[int16] = wire()


@struct
class TaskIds:
    """Tasks: one per partition of a subtopology."""

    subtopology_id: str = wire()
    partitions: list[int32] = wire()


@struct
class Endpoint:
    host: str = wire()
    port: uint16 = wire()


@struct
class TaskOffset:
    """A task's restored offset, summed over its changelogs."""

    subtopology_id: str = wire()
    partition: int32 = wire()
    offset: int64 = wire()


@message(ApiKey.STREAMS_GROUP_HEARTBEAT)
class StreamsGroupHeartbeatResponse:
    """The member's epoch, its tasks if they changed, and the endpoints of other tasks."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    member_id: str = wire()
    member_epoch: int32 = wire()
    heartbeat_interval_ms: int32 = wire()
    acceptable_recovery_lag_legacy: int32 = wire(versions="0", default=0)
    task_offset_interval_ms: int32 = wire()
    acceptable_recovery_lag: int64 = wire(versions="1+", default=-1)  # KIP-1331
    status: list[Status] | None = wire(nullable="0+")
    active_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    topology_description_required: bool = wire(versions="1+", default=False)  # KIP-1331
    endpoint_information_epoch: int32 = wire()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = wire(nullable="0+", default=None)


@struct
class Status:
    """0 stale topology, 1 missing source topics, 2 wrongly partitioned, 3 missing internal topics, 4 shut down, 5
    assignment delayed."""

    status_code: int8 = wire()
    status_detail: str = wire()


@struct
class EndpointToPartitions:
    """The partitions whose state interactive queries find at an endpoint."""

    user_endpoint: Endpoint = wire()
    active_partitions: list[TopicPartition] = wire()
    standby_partitions: list[TopicPartition] = wire()


@struct
class TopicPartition:
    topic: str = wire()
    partitions: list[int32] = wire()
