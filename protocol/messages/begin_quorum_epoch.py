"""BeginQuorumEpoch (53)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, uint16, uuid


@message(ApiKey.BEGIN_QUORUM_EPOCH)
class BeginQuorumEpochRequest:
    """A new KRaft leader announces its epoch to the voters (KIP-595)."""

    cluster_id: str | None = wire(nullable="0+", default=None)
    voter_id: int32 = wire(versions="1+", default=-1)  # KIP-853
    topics: list[TopicData] = wire()
    leader_endpoints: list[LeaderEndpoint] = wire(versions="1+", default=IMPLICIT)  # KIP-853


@struct
class TopicData:
    topic_name: str = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition_index: int32 = wire()
    voter_directory_id: uuid = wire(versions="1+", default=IMPLICIT)  # KIP-853
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()


@struct
class LeaderEndpoint:
    """The endpoint of the new leader, with its listener name."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()


@message(ApiKey.BEGIN_QUORUM_EPOCH)
class BeginQuorumEpochResponse:
    """The voter's acceptance of the leader, as an error code."""

    error_code: int16 = wire()
    topics: list[ResponseTopicData] = wire()
    node_endpoints: list[NodeEndpoint] = wire(versions="1+", tag=0, default=IMPLICIT)  # KIP-853


@struct
class ResponseTopicData:
    topic_name: str = wire()
    partitions: list[ResponsePartitionData] = wire()


@struct
class ResponsePartitionData:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()


@struct
class NodeEndpoint:
    node_id: int32 = wire()
    host: str = wire()
    port: uint16 = wire()
