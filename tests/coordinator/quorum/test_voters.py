"""Tests that the voters of a quorum with one voter don't change (KIP-853)."""

from __future__ import annotations

import pytest

from coordinator.cluster.brokers.info import Endpoint
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.voters import Voter, error_of_added, error_of_removed
from protocol.errors import ErrorCode
from protocol.messages import add_raft_voter
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest

CLUSTER = "the-cluster"
LEADER = 1
LISTENER = "CONTROLLER"
DIRECTORY = bytes([1]) * 16
OTHER_DIRECTORY = bytes([2]) * 16
VOTER = Voter(CLUSTER, ReplicaKey(LEADER, DIRECTORY), (Endpoint(LISTENER, "controller.example", 9093),))
OTHER = 2
NO_ID = bytes(16)


@pytest.mark.parametrize(
    ("cluster_id", "voter_id", "directory_id", "listener", "count", "code"),
    [
        ("another", OTHER, OTHER_DIRECTORY, LISTENER, 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (CLUSTER, -1, OTHER_DIRECTORY, LISTENER, 1, ErrorCode.INVALID_REQUEST),
        (CLUSTER, OTHER, NO_ID, LISTENER, 1, ErrorCode.INVALID_REQUEST),
        (CLUSTER, OTHER, OTHER_DIRECTORY, "INTERNAL", 1, ErrorCode.INVALID_REQUEST),
        (None, LEADER, OTHER_DIRECTORY, LISTENER, 1, ErrorCode.DUPLICATE_VOTER),
        (CLUSTER, OTHER, OTHER_DIRECTORY, "controller", 1, ErrorCode.UNSUPPORTED_VERSION),
        (CLUSTER, OTHER, OTHER_DIRECTORY, LISTENER, 65, ErrorCode.INVALID_REQUEST),
    ],
)
def test_no_voter_is_added(
    cluster_id: str | None, voter_id: int, directory_id: bytes, listener: str, count: int, code: ErrorCode
) -> None:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[add_raft_voter.Listener(name=listener, host="b", port=1)] * count,
    )
    error = error_of_added(VOTER, request)
    assert error.code is code
    assert error.message


@pytest.mark.parametrize(
    ("cluster_id", "voter_id", "directory_id", "code"),
    [
        ("another", LEADER, DIRECTORY, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (CLUSTER, -1, DIRECTORY, ErrorCode.INVALID_REQUEST),
        (CLUSTER, LEADER, NO_ID, ErrorCode.INVALID_REQUEST),
        (CLUSTER, LEADER, DIRECTORY, ErrorCode.VOTER_NOT_FOUND),
        (CLUSTER, OTHER, OTHER_DIRECTORY, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_the_only_voter_is_not_removed(cluster_id: str, voter_id: int, directory_id: bytes, code: ErrorCode) -> None:
    request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)
    assert error_of_removed(VOTER, request).code is code
