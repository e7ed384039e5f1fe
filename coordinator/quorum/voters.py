"""Answers to requests of clients to change the voters of a node that no other node can reach (KIP-853).

This node is, and stays, the only voter: requests that Kafka rejects in such a quorum are rejected with its errors, and
another voter with UNSUPPORTED_VERSION. Source: Kafka's AddVoterHandler, RemoveVoterHandler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from coordinator.cluster.brokers.bounds import problem_of_count
from coordinator.cluster.brokers.info import Endpoint
from coordinator.quorum.replicas import ReplicaKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.types import uuid_to_text

ONE_VOTER: Final = (
    "Cluster doesn't support adding voter because its controller has no listener that another voter could reach: set "
    "controller.listener.names and controller.quorum.bootstrap.servers"
)


class Voter(NamedTuple):
    """This node as the quorum's voter."""

    cluster_id: str
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]

    def is_of_cluster(self, cluster_id: str | None) -> bool:
        """True if a request names this cluster, or none."""
        return cluster_id is None or cluster_id == self.cluster_id


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
    problem = problem_of_count(request.listeners)
    if problem is not None:
        return KafkaError(ErrorCode.INVALID_REQUEST, problem)
    if not _has_listener(voter, request.listeners):
        listed = ", ".join(f"{listener.name}={listener.host}:{listener.port}" for listener in request.listeners)
        message = (
            f"Add voter request didn't include the endpoint ({listed}) for the default listener "
            f"{voter.endpoints[0].name}"
        )
        return KafkaError(ErrorCode.INVALID_REQUEST, message)
    if added.node_id == voter.key.node_id:
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
