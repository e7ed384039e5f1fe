"""Answers of a quorum's leader to requests that change its voters: AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter
(KIP-853).

This node is, and stays, the only voter: requests that Kafka rejects in such a quorum are rejected with its errors, and
another voter with UNSUPPORTED_VERSION, because consensus between several controllers isn't implemented. Source: Kafka's
AddVoterHandler, RemoveVoterHandler and UpdateVoterHandler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from coordinator.cluster.quorum import KRAFT_VERSION
from coordinator.quorum.leader import QuorumLeader, Voter
from coordinator.quorum.replicas import ReplicaKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from protocol.types import uuid_to_text

ONE_VOTER: Final = (
    "Cluster doesn't support adding voter because its controller is Odradek's, which is the only voter; only Apache "
    "Kafka has quorums of several voters"
)


class _Listener(Protocol):
    name: str
    host: str
    port: int


def error_of_added(voter: Voter, request: AddRaftVoterRequest) -> KafkaError:
    """Returns the error that answers AddRaftVoter."""
    if not voter.is_of_cluster(request.cluster_id):
        return _other_cluster(voter, request.cluster_id)
    added = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not _is_replica(added):
        return KafkaError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    if not _has_listener(voter, request.listeners):
        listed = ", ".join(f"{listener.name}={listener.host}:{listener.port}" for listener in request.listeners)
        message = (
            f"Add voter request didn't include the endpoint ({listed}) for the default listener "
            f"{voter.endpoints[0].name}"
        )
        return KafkaError(ErrorCode.INVALID_REQUEST, message)
    if added.node_id == voter.node_id:
        message = f"The voter id for {_text(added)} is already part of the set of voters [{_text(voter.key)}]."
        return KafkaError(ErrorCode.DUPLICATE_VOTER, message)
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, ONE_VOTER)


def error_of_removed(voter: Voter, request: RemoveRaftVoterRequest) -> KafkaError:
    """Returns the error that answers RemoveRaftVoter: a quorum can't lose its last voter."""
    if not voter.is_of_cluster(request.cluster_id):
        return _other_cluster(voter, request.cluster_id)
    removed = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not _is_replica(removed):
        return KafkaError(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    message = f"Cannot remove voter {_text(removed)} from the set of voters [{_text(voter.key)}]"
    return KafkaError(ErrorCode.VOTER_NOT_FOUND, message)


def answer_update(leader: QuorumLeader, request: UpdateRaftVoterRequest, listener: str) -> UpdateRaftVoterResponse:
    """Answers UpdateRaftVoter, with which a voter reports its endpoints. Nothing changes, because this node knows its
    own.
    """
    voter = leader.voter
    current = CurrentLeader(leader_id=voter.node_id, leader_epoch=leader.metadata_log.epoch, host="", port=0)
    endpoint = voter.endpoint(listener)
    if endpoint is not None:
        current.host, current.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=_error_of_update(leader, request), current_leader=current)


def _error_of_update(leader: QuorumLeader, request: UpdateRaftVoterRequest) -> ErrorCode:
    voter, levels = leader.voter, request.k_raft_version_feature
    if not voter.is_of_cluster(request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    code = leader.error_of_epoch(request.current_leader_epoch)
    if code:
        return code
    updated = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not _is_replica(updated) or not _has_listener(voter, request.listeners):
        return ErrorCode.INVALID_REQUEST
    if not 0 <= levels.min_supported_version <= KRAFT_VERSION <= levels.max_supported_version:
        return ErrorCode.INVALID_REQUEST
    if updated != voter.key:
        return ErrorCode.VOTER_NOT_FOUND
    endpoints = {(listener.name.upper(), listener.host, listener.port) for listener in request.listeners}
    own = {(endpoint.name.upper(), endpoint.host, endpoint.port) for endpoint in voter.endpoints}
    return ErrorCode.NONE if endpoints == own else ErrorCode.INVALID_REQUEST


def _other_cluster(voter: Voter, cluster_id: str | None) -> KafkaError:
    message = f'The given id "{cluster_id}" doesn\'t match the cluster id "{voter.cluster_id}"'
    return KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def _is_replica(key: ReplicaKey) -> bool:
    return key.node_id >= 0 and any(key.directory_id)


def _has_listener(voter: Voter, listeners: Iterable[_Listener]) -> bool:
    return voter.endpoints[0].name.upper() in (listener.name.upper() for listener in listeners)


def _text(key: ReplicaKey) -> str:
    """Returns the replica as Kafka's messages show it."""
    directory = f"Optional[{uuid_to_text(key.directory_id)}]" if any(key.directory_id) else "Optional.empty"
    return f"ReplicaKey(id={key.node_id}, directoryId={directory})"
