"""Answers of a quorum's leader to controllers that request votes, lead, or resign: Vote, BeginQuorumEpoch and
EndQuorumEpoch (KIP-595, KIP-853, KIP-996).

This node is the only voter, so no other node can win an election. Kafka's leader would resign for a later epoch; this
leader answers INCONSISTENT_VOTER_SET. Otherwise any process that reaches the listener could make the leader resign, or
use up all epochs.

Source: Kafka's KafkaRaftClient.handleVoteRequest and similar methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.leader import QuorumLeader
from protocol.errors import ErrorCode
from protocol.messages import begin_quorum_epoch as begin
from protocol.messages import end_quorum_epoch as end
from protocol.messages import vote
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.types import Uuid

FIRST_NODE_ENDPOINTS: Final = 1
"""First version of these APIs whose response has the leader's endpoint (KIP-853)."""


class _Partition(Protocol):
    partition_index: int


P = TypeVar("P", bound=_Partition)
P_co = TypeVar("P_co", bound=_Partition, covariant=True)
N = TypeVar("N")


class _VoteTopic(Protocol[P_co]):
    topic_name: str

    @property
    def partitions(self) -> Sequence[P_co]: ...


def answer_vote(leader: QuorumLeader, request: VoteRequest, version: int, listener: str) -> VoteResponse:
    """Answers a candidate, which gets no vote because this node leads."""
    partition = _only_partition(request.topics)
    code = _error_of_request(leader, request.cluster_id, partition)
    if partition is None or code:
        return VoteResponse(error_code=code, topics=[])
    last_epoch, last_offset = partition.last_offset_epoch, partition.last_offset
    if last_offset < 0 or last_epoch < 0 or last_epoch >= partition.replica_epoch + partition.pre_vote:
        code = ErrorCode.INVALID_REQUEST
    else:
        code = _error_of_sender(leader, partition.replica_id, partition.replica_epoch) or _error_of_receiver(
            leader, request.voter_id, partition.voter_directory_id
        )
    data = vote.ResponsePartitionData(
        partition_index=0,
        error_code=code,
        leader_id=leader.voter.node_id,
        leader_epoch=leader.metadata_log.epoch,
        vote_granted=False,
    )
    topic = vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    endpoints = _node_endpoints(leader, version, listener, vote.NodeEndpoint)
    return VoteResponse(error_code=ErrorCode.NONE, topics=[topic], node_endpoints=endpoints)


def answer_begin_quorum_epoch(
    leader: QuorumLeader, request: BeginQuorumEpochRequest, version: int, listener: str
) -> BeginQuorumEpochResponse:
    """Answers a node that claims to be the leader."""
    partition = _only_partition(request.topics)
    code = _error_of_request(leader, request.cluster_id, partition)
    if partition is None or code:
        return BeginQuorumEpochResponse(error_code=code, topics=[])
    data = begin.ResponsePartitionData(
        partition_index=0,
        error_code=_error_of_leader(leader, partition.leader_id, partition.leader_epoch)
        or _error_of_receiver(leader, request.voter_id, partition.voter_directory_id),
        leader_id=leader.voter.node_id,
        leader_epoch=leader.metadata_log.epoch,
    )
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    endpoints = _node_endpoints(leader, version, listener, begin.NodeEndpoint)
    return BeginQuorumEpochResponse(error_code=ErrorCode.NONE, topics=[topic], node_endpoints=endpoints)


def answer_end_quorum_epoch(
    leader: QuorumLeader, request: EndQuorumEpochRequest, version: int, listener: str
) -> EndQuorumEpochResponse:
    """Answers a node that resigns as the leader."""
    partition = _only_partition(request.topics)
    code = _error_of_request(leader, request.cluster_id, partition)
    if partition is None or code:
        return EndQuorumEpochResponse(error_code=code, topics=[])
    data = end.ResponsePartitionData(
        partition_index=0,
        error_code=_error_of_leader(leader, partition.leader_id, partition.leader_epoch),
        leader_id=leader.voter.node_id,
        leader_epoch=leader.metadata_log.epoch,
    )
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    endpoints = _node_endpoints(leader, version, listener, end.NodeEndpoint)
    return EndQuorumEpochResponse(error_code=ErrorCode.NONE, topics=[topic], node_endpoints=endpoints)


def _only_partition(topics: Sequence[_VoteTopic[P]]) -> P | None:
    """Returns the metadata partition, if the request is only for it."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition_index == 0 else None


def _error_of_request(leader: QuorumLeader, cluster_id: str | None, partition: _Partition | None) -> ErrorCode:
    if not leader.voter.is_of_cluster(cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return ErrorCode.INVALID_REQUEST if partition is None else ErrorCode.NONE


def _error_of_sender(leader: QuorumLeader, node_id: int, epoch: int) -> ErrorCode:
    if epoch < leader.metadata_log.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INCONSISTENT_VOTER_SET if epoch > leader.metadata_log.epoch else ErrorCode.NONE


def _error_of_leader(leader: QuorumLeader, leader_id: int, epoch: int) -> ErrorCode:
    """Returns the error of a node that claims to lead an epoch: each epoch has one leader, this node."""
    code = _error_of_sender(leader, leader_id, epoch)
    return code or (ErrorCode.NONE if leader_id == leader.voter.node_id else ErrorCode.INCONSISTENT_VOTER_SET)


def _error_of_receiver(leader: QuorumLeader, voter_id: int, directory_id: Uuid) -> ErrorCode:
    is_meant = leader.voter.is_meant_by(voter_id, directory_id)
    return ErrorCode.NONE if is_meant else ErrorCode.INVALID_VOTER_KEY


def _node_endpoints(leader: QuorumLeader, version: int, listener: str, of: Callable[..., N]) -> list[N]:
    """Returns the leader's endpoint on the request's listener."""
    endpoint = leader.voter.endpoint(listener)
    if version < FIRST_NODE_ENDPOINTS or endpoint is None:
        return []
    return [of(node_id=leader.voter.node_id, host=endpoint.host, port=endpoint.port)]
