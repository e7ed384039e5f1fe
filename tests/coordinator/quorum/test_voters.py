"""Tests that the voters of a quorum with one voter don't change (KIP-853)."""

from __future__ import annotations

import pytest

from coordinator.quorum.voters import answer_update, error_of_added, error_of_removed
from protocol.errors import ErrorCode
from protocol.messages import add_raft_voter, update_raft_voter
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from tests.coordinator.quorum.leaders import CLUSTER, DIRECTORY, LEADER, LISTENER, OTHER_DIRECTORY, VOTER, a_leader

OTHER = 2
NO_ID = bytes(16)


@pytest.mark.parametrize(
    ("cluster_id", "voter_id", "directory_id", "listener", "code"),
    [
        ("another", OTHER, OTHER_DIRECTORY, LISTENER, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (CLUSTER, -1, OTHER_DIRECTORY, LISTENER, ErrorCode.INVALID_REQUEST),
        (CLUSTER, OTHER, NO_ID, LISTENER, ErrorCode.INVALID_REQUEST),
        (CLUSTER, OTHER, OTHER_DIRECTORY, "INTERNAL", ErrorCode.INVALID_REQUEST),
        (None, LEADER, OTHER_DIRECTORY, LISTENER, ErrorCode.DUPLICATE_VOTER),
        (CLUSTER, OTHER, OTHER_DIRECTORY, "controller", ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_no_voter_is_added(
    cluster_id: str | None, voter_id: int, directory_id: bytes, listener: str, code: ErrorCode
) -> None:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[add_raft_voter.Listener(name=listener, host="b", port=1)],
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


UPDATE: dict[str, object] = {
    "cluster_id": CLUSTER,
    "current_leader_epoch": 3,
    "voter_id": LEADER,
    "voter_directory_id": DIRECTORY,
    "listeners": [update_raft_voter.Listener(name=LISTENER, host="controller.example", port=9093)],
    "k_raft_version_feature": KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"current_leader_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 4}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_directory_id": NO_ID}, ErrorCode.INVALID_REQUEST),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": OTHER}, ErrorCode.VOTER_NOT_FOUND),
        ({"voter_directory_id": OTHER_DIRECTORY}, ErrorCode.VOTER_NOT_FOUND),
        (
            {"k_raft_version_feature": KRaftVersionFeature(min_supported_version=0, max_supported_version=0)},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {"listeners": [update_raft_voter.Listener(name=LISTENER, host="attacker.example", port=9093)]},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_a_voter_is_where_it_says_itself(change: dict[str, object], code: ErrorCode) -> None:
    response = answer_update(a_leader(), UpdateRaftVoterRequest(**UPDATE | change), LISTENER)  # type: ignore[arg-type]
    current = response.current_leader
    assert response.error_code == code
    assert (current.leader_id, current.leader_epoch, current.host, current.port) == (
        LEADER, 3, "controller.example", 9093,
    )  # fmt: skip
