"""StreamsGroupHeartbeat (88)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uint16


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """A Kafka Streams client joins, leaves, says what changed or that it lives (KIP-1071)."""

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
    topic_configs: list[KeyValue] = wire()


@struct
class KeyValue:
    key: str = wire()
    value: str = wire()


@struct
class CopartitionGroup:
    source_topics: list[int16] = wire()
    source_topic_regex: list[int16] = wire()
    repartition_source_topics: list[int16] = wire()


@struct
class TaskIds:
    subtopology_id: str = wire()
    partitions: list[int32] = wire()


@struct
class Endpoint:
    host: str = wire()
    port: uint16 = wire()


@struct
class TaskOffset:
    subtopology_id: str = wire()
    partition: int32 = wire()
    offset: int64 = wire()


@message(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """The member's epoch, its tasks when they changed, and where other tasks live."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    member_id: str = wire()
    member_epoch: int32 = wire()
    heartbeat_interval_ms: int32 = wire()
    acceptable_recovery_lag: int32 = wire()
    task_offset_interval_ms: int32 = wire()
    status: list[Status] | None = wire(nullable="0+")
    active_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = wire(nullable="0+", default=None)
    endpoint_information_epoch: int32 = wire()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = wire(nullable="0+", default=None)


@struct
class Status:
    status_code: int8 = wire()
    status_detail: str = wire()


@struct
class EndpointToPartitions:
    user_endpoint: Endpoint = wire()
    active_partitions: list[TopicPartition] = wire()
    standby_partitions: list[TopicPartition] = wire()


@struct
class TopicPartition:
    topic: str = wire()
    partitions: list[int32] = wire()
