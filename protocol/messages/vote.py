"""Vote (52)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uint16, uuid


@message(ApiKey.VOTE)
class VoteRequest:
    """A KRaft candidate requests a vote or a pre-vote (KIP-595, KIP-996)."""

    cluster_id: str | None = wire(nullable="0+", default=None)
    voter_id: int32 = wire(versions="1+", default=-1)  # KIP-853
    topics: list[TopicData] = wire()


@struct
class TopicData:
    topic_name: str = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """The candidate and its log's end. With `pre_vote` it requests a pre-vote, which changes no epoch (KIP-996)."""

    partition_index: int32 = wire()
    replica_epoch: int32 = wire()
    replica_id: int32 = wire()
    replica_directory_id: uuid = wire(versions="1+", default=IMPLICIT)  # KIP-853
    voter_directory_id: uuid = wire(versions="1+", default=IMPLICIT)  # KIP-853
    last_offset_epoch: int32 = wire()
    last_offset: int64 = wire()
    pre_vote: bool = wire(versions="2+", default=False)  # KIP-996


@message(ApiKey.VOTE)
class VoteResponse:
    """The granted or rejected vote, and the leader that the voter knows."""

    error_code: int16 = wire()
    topics: list[ResponseTopicData] = wire()
    node_endpoints: list[NodeEndpoint] = wire(versions="1+", tag=0, default=IMPLICIT)  # KIP-853


@struct
class ResponseTopicData:
    topic_name: str = wire()
    partitions: list[ResponsePartitionData] = wire()


@struct
class ResponsePartitionData:
    """The voter's decision, and the leader that it knows."""

    partition_index: int32 = wire()
    error_code: int16 = wire()
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()
    vote_granted: bool = wire()


@struct
class NodeEndpoint:
    node_id: int32 = wire()
    host: str = wire()
    port: uint16 = wire()
