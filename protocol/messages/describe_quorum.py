"""DescribeQuorum (55)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uint16, uuid


@message(ApiKey.DESCRIBE_QUORUM)
class DescribeQuorumRequest:
    """Requests the state of the KRaft quorum (KIP-642)."""

    topics: list[TopicData] = wire()


@struct
class TopicData:
    topic_name: str = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition_index: int32 = wire()


@message(ApiKey.DESCRIBE_QUORUM)
class DescribeQuorumResponse:
    """The leader, its epoch, and the progress of each voter and observer."""

    error_code: int16 = wire()
    error_message: str | None = wire(versions="2+", nullable="2+", default=None)  # KIP-853
    topics: list[ResponseTopicData] = wire()
    nodes: list[Node] = wire(versions="2+", default=IMPLICIT)  # KIP-853


@struct
class ResponseTopicData:
    topic_name: str = wire()
    partitions: list[ResponsePartitionData] = wire()


@struct
class ResponsePartitionData:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(versions="2+", nullable="2+", default=None)  # KIP-853
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()
    high_watermark: int64 = wire()
    current_voters: list[ReplicaState] = wire()
    observers: list[ReplicaState] = wire()


@struct
class ReplicaState:
    """The progress of a voter or observer in the metadata log. Times are -1 if unknown."""

    replica_id: int32 = wire()
    replica_directory_id: uuid = wire(versions="2+", default=IMPLICIT)  # KIP-853
    log_end_offset: int64 = wire()
    last_fetch_timestamp: int64 = wire(versions="1+", default=-1)  # KIP-836
    last_caught_up_timestamp: int64 = wire(versions="1+", default=-1)  # KIP-836


@struct
class Node:
    node_id: int32 = wire()
    listeners: list[Listener] = wire()


@struct
class Listener:
    name: str = wire()
    host: str = wire()
    port: uint16 = wire()
