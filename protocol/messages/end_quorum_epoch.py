"""EndQuorumEpoch (54)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, uint16, uuid


@message(ApiKey.END_QUORUM_EPOCH)
class EndQuorumEpochRequest:
    """A resigning KRaft leader tells its preferred successors to start an election (KIP-595)."""

    cluster_id: str | None = wire(nullable="0+", default=None)
    topics: list[TopicData] = wire()
    leader_endpoints: list[LeaderEndpoint] = wire(versions="1+", default=IMPLICIT)  # KIP-853


@struct
class TopicData:
    topic_name: str = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition_index: int32 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()
    preferred_successors: list[int32] = wire(versions="0", default=IMPLICIT)
    preferred_candidates: list[ReplicaInfo] = wire(versions="1+", default=IMPLICIT)  # KIP-853


@struct
class ReplicaInfo:
    """A preferred successor, the best first."""

    candidate_id: int32 = wire()
    candidate_directory_id: uuid = wire()


@struct
class LeaderEndpoint:
    name: str = wire()
    host: str = wire()
    port: uint16 = wire()


@message(ApiKey.END_QUORUM_EPOCH)
class EndQuorumEpochResponse:
    """The error code of the voter."""

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
