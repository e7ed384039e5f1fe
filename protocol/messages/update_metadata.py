"""UpdateMetadata (6)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.UPDATE_METADATA)
class UpdateMetadataRequest:
    """A ZooKeeper-mode controller pushes the cluster's metadata to a broker's cache."""

    controller_id: int32 = wire()
    is_k_raft_controller: bool = wire(versions="8+", default=False)  # KIP-866
    type: int8 = wire(versions="8+", tag=0, default=0)  # KIP-866
    controller_epoch: int32 = wire()
    broker_epoch: int64 = wire(versions="5+", default=-1)  # KIP-380
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = wire(versions="0-4", default=IMPLICIT)
    topic_states: list[UpdateMetadataTopicState] = wire(versions="5+", default=IMPLICIT)  # KIP-380
    live_brokers: list[UpdateMetadataBroker] = wire()


@struct
class UpdateMetadataPartitionState:
    topic_name: str = wire(versions="0-4", default="")
    partition_index: int32 = wire()
    controller_epoch: int32 = wire()
    leader: int32 = wire()
    leader_epoch: int32 = wire()
    isr: list[int32] = wire()
    zk_version: int32 = wire()
    replicas: list[int32] = wire()
    offline_replicas: list[int32] = wire(versions="4+", default=IMPLICIT)  # KIP-112


@struct
class UpdateMetadataTopicState:
    topic_name: str = wire()
    topic_id: uuid = wire(versions="7+", default=IMPLICIT)  # KIP-516
    partition_states: list[UpdateMetadataPartitionState] = wire()


@struct
class UpdateMetadataBroker:
    id: int32 = wire()
    v0_host: str = wire(versions="0", default="")
    v0_port: int32 = wire(versions="0", default=0)
    endpoints: list[UpdateMetadataEndpoint] = wire(versions="1+", default=IMPLICIT)
    rack: str | None = wire(versions="2+", nullable="2+", default=None)  # KIP-36


@struct
class UpdateMetadataEndpoint:
    port: int32 = wire()
    host: str = wire()
    listener: str = wire(versions="3+", default="")  # KIP-103
    security_protocol: int16 = wire()


@message(ApiKey.UPDATE_METADATA)
class UpdateMetadataResponse:
    """The error code of the update."""

    error_code: int16 = wire()
