"""Metadata (3)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.METADATA)
class MetadataRequest:
    """A client requests the brokers, and the partitions of topics."""

    topics: list[MetadataRequestTopic] | None = wire(nullable="1+")
    allow_auto_topic_creation: bool = wire(versions="4+", default=True)
    include_cluster_authorized_operations: bool = wire(versions="8-10", default=False)  # KIP-430
    include_topic_authorized_operations: bool = wire(versions="8+", default=False)  # KIP-430


@struct
class MetadataRequestTopic:
    """A topic by name, or since version 12 by id with a null name."""

    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-516
    name: str | None = wire(nullable="10+")


@message(ApiKey.METADATA)
class MetadataResponse:
    """The brokers of the cluster, and each topic's partitions with leaders, replicas and in-sync replicas."""

    throttle_time_ms: int32 = wire(versions="3+", default=0)  # KIP-124
    brokers: list[MetadataResponseBroker] = wire()
    cluster_id: str | None = wire(versions="2+", nullable="2+", default=None)  # KIP-78
    controller_id: int32 = wire(versions="1+", default=-1)  # KIP-4
    topics: list[MetadataResponseTopic] = wire()
    cluster_authorized_operations: int32 = wire(versions="8-10", default=-0x80000000)  # KIP-430
    error_code: int16 = wire(versions="13+", default=0)  # KIP-1102


@struct
class MetadataResponseBroker:
    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(versions="1+", nullable="1+", default=None)  # KIP-36


@struct
class MetadataResponseTopic:
    """A topic. Its authorized operations are bits by ACL code, or the smallest int32 if not requested."""

    error_code: int16 = wire()
    name: str | None = wire(nullable="12+")
    topic_id: uuid = wire(versions="10+", default=IMPLICIT)  # KIP-516
    is_internal: bool = wire(versions="1+", default=False)  # KIP-4
    partitions: list[MetadataResponsePartition] = wire()
    topic_authorized_operations: int32 = wire(versions="8+", default=-0x80000000)  # KIP-430


@struct
class MetadataResponsePartition:
    """A partition. The leader is -1 if it has none."""

    error_code: int16 = wire()
    partition_index: int32 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire(versions="7+", default=-1)  # KIP-320
    replica_nodes: list[int32] = wire()
    isr_nodes: list[int32] = wire()
    offline_replicas: list[int32] = wire(versions="5+", default=IMPLICIT)  # KIP-112
