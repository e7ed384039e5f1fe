"""Tests a leader that is the only voter: its answers to nodes that request votes, lead or resign."""

from __future__ import annotations

import pytest

from coordinator.quorum.voting import answer_begin_quorum_epoch, answer_end_quorum_epoch, answer_vote
from protocol.errors import ErrorCode
from protocol.messages import begin_quorum_epoch as begin
from protocol.messages import end_quorum_epoch as end
from protocol.messages import vote
from tests.coordinator.quorum.leaders import CLUSTER, DIRECTORY, LEADER, LISTENER, OTHER_DIRECTORY, a_leader

OTHER = 2
OTHER_TOPIC = "t"
METADATA = "__cluster_metadata"
NO_ID = bytes(16)


def voted(
    topic: str = METADATA, cluster_id: str | None = CLUSTER, voter_id: int = LEADER, version: int = 2, **fields: object
) -> vote.VoteResponse:
    partition: dict[str, object] = {
        "partition_index": 0, "replica_epoch": 3, "replica_id": OTHER, "replica_directory_id": OTHER_DIRECTORY,
        "voter_directory_id": DIRECTORY, "last_offset_epoch": 1, "last_offset": 5,
    } | fields  # fmt: skip
    request = vote.VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        topics=[vote.TopicData(topic_name=topic, partitions=[vote.PartitionData(**partition)])],  # type: ignore[arg-type]
    )
    return answer_vote(a_leader(), request, version, LISTENER)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"pre_vote": True, "last_offset_epoch": 3}, ErrorCode.NONE),
        ({"replica_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"replica_epoch": 4}, ErrorCode.INCONSISTENT_VOTER_SET),
        ({"replica_epoch": (1 << 31) - 1}, ErrorCode.INCONSISTENT_VOTER_SET),
        ({"replica_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_offset_epoch": 3}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 7}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter_directory_id": OTHER_DIRECTORY}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter_directory_id": NO_ID}, ErrorCode.NONE),
        ({"voter_id": -1, "voter_directory_id": OTHER_DIRECTORY}, ErrorCode.NONE),
    ],
)
def test_nobody_gets_the_vote(fields: dict[str, object], code: ErrorCode) -> None:
    response = voted(**fields)  # type: ignore[arg-type]
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert (partition.error_code, partition.vote_granted) == (code, False)
    assert (partition.leader_id, partition.leader_epoch) == (LEADER, 3)
    assert response.node_endpoints == [vote.NodeEndpoint(node_id=LEADER, host="controller.example", port=9093)]


def test_a_vote_in_another_quorum_is_refused_as_a_whole() -> None:
    assert voted(cluster_id="another").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert voted(topic=OTHER_TOPIC).error_code == ErrorCode.INVALID_REQUEST
    assert voted(partition_index=1).error_code == ErrorCode.INVALID_REQUEST
    assert voted(version=0).node_endpoints == []


@pytest.mark.parametrize(
    ("leader_id", "epoch", "voter_id", "code"),
    [
        (LEADER, 3, LEADER, ErrorCode.NONE),
        (OTHER, 3, LEADER, ErrorCode.INCONSISTENT_VOTER_SET),
        (OTHER, 4, LEADER, ErrorCode.INCONSISTENT_VOTER_SET),
        (LEADER, 4, LEADER, ErrorCode.INCONSISTENT_VOTER_SET),
        (OTHER, 2, LEADER, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 3, LEADER, ErrorCode.INVALID_REQUEST),
        (LEADER, 3, 7, ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_nobody_else_leads(leader_id: int, epoch: int, voter_id: int, code: ErrorCode) -> None:
    data = begin.PartitionData(partition_index=0, voter_directory_id=DIRECTORY, leader_id=leader_id, leader_epoch=epoch)
    request = begin.BeginQuorumEpochRequest(
        cluster_id=CLUSTER, voter_id=voter_id, topics=[begin.TopicData(topic_name=METADATA, partitions=[data])]
    )
    leader = a_leader()
    response = answer_begin_quorum_epoch(leader, request, 1, LISTENER)
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (code, LEADER, 3)
    assert leader.metadata_log.epoch == 3
    assert response.node_endpoints[0].port == 9093


@pytest.mark.parametrize(
    ("leader_id", "epoch", "code"),
    [
        (LEADER, 3, ErrorCode.NONE),
        (OTHER, 4, ErrorCode.INCONSISTENT_VOTER_SET),
        (OTHER, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 3, ErrorCode.INVALID_REQUEST),
    ],
)
def test_nobody_else_resigns(leader_id: int, epoch: int, code: ErrorCode) -> None:
    data = end.PartitionData(partition_index=0, leader_id=leader_id, leader_epoch=epoch)
    request = end.EndQuorumEpochRequest(cluster_id=None, topics=[end.TopicData(topic_name=METADATA, partitions=[data])])
    response = answer_end_quorum_epoch(a_leader(), request, 1, LISTENER)
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (code, LEADER, 3)


def test_other_quorums_neither_begin_nor_end_here() -> None:
    leader = a_leader()
    begun = answer_begin_quorum_epoch(leader, begin.BeginQuorumEpochRequest(cluster_id="x", topics=[]), 1, LISTENER)
    ended = answer_end_quorum_epoch(leader, end.EndQuorumEpochRequest(cluster_id=CLUSTER, topics=[]), 1, LISTENER)
    assert (begun.error_code, begun.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
    assert (ended.error_code, ended.topics) == (ErrorCode.INVALID_REQUEST, [])
