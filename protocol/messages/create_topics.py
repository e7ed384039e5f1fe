"""CreateTopics (19)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, uuid


@message(ApiKey.CREATE_TOPICS)
class CreateTopicsRequest:
    """Topics to create, with a number of partitions or an assignment of replicas, and configs."""

    topics: list[CreatableTopic] = wire()
    timeout_ms: int32 = wire(default=60000)
    validate_only: bool = wire(versions="1+", default=False)  # KIP-4


@struct
class CreatableTopic:
    """A topic. Partitions and replication factor are -1 for the broker's default, or with assigned replicas."""

    name: str = wire()
    num_partitions: int32 = wire()
    replication_factor: int16 = wire()
    assignments: list[CreatableReplicaAssignment] = wire()
    configs: list[CreatableTopicConfig] = wire()


@struct
class CreatableReplicaAssignment:
    """The replicas of a partition, preferred leader first."""

    partition_index: int32 = wire()
    broker_ids: list[int32] = wire()


@struct
class CreatableTopicConfig:
    name: str = wire()
    value: str | None = wire(nullable="0+")


@message(ApiKey.CREATE_TOPICS)
class CreateTopicsResponse:
    """Each topic's id and effective configs, or its error."""

    throttle_time_ms: int32 = wire(versions="2+", default=0)  # KIP-124
    topics: list[CreatableTopicResult] = wire()


@struct
class CreatableTopicResult:
    """A topic. The config error is the reason for missing configs of a topic that was created."""

    name: str = wire()
    topic_id: uuid = wire(versions="7+", default=IMPLICIT)  # KIP-516
    error_code: int16 = wire()
    error_message: str | None = wire(versions="1+", nullable="1+", default=None)  # KIP-4
    topic_config_error_code: int16 = wire(versions="5+", tag=0, default=0)  # KIP-525
    num_partitions: int32 = wire(versions="5+", default=-1)  # KIP-525
    replication_factor: int16 = wire(versions="5+", default=-1)  # KIP-525
    configs: list[CreatableTopicConfigs] | None = wire(versions="5+", nullable="5+", default=None)  # KIP-525


@struct
class CreatableTopicConfigs:
    """An effective config. Sources are as in DescribeConfigs."""

    name: str = wire()
    value: str | None = wire(nullable="0+")
    read_only: bool = wire()
    config_source: int8 = wire(default=-1)
    is_sensitive: bool = wire()
