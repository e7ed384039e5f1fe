"""Tests each rule for an allowed difference with a difference that it must not cover."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from protocol.types import NO_UUID
from tests.fuzz.differential import comes_apart, strange
from tests.fuzz.silence import is_silent_over
from tests.fuzz.twins import CLOSED, NO_ANSWER, Answers

FETCH_VERSION = 13


def fetch(isolation_level: int = 0, max_bytes: int = 100, session_id: int = 0, *topic_ids: bytes) -> FetchRequest:
    topics = [
        FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)])
        for topic_id in topic_ids or (b"\1" * 16,)
    ]
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, isolation_level=isolation_level, session_id=session_id,
        topics=topics, forgotten_topics_data=[],
    )  # fmt: skip


@pytest.mark.parametrize(("fetching", "is_meant"), [
    (fetch(), False),
    (fetch(1), False),
    (fetch(2), True),
    (fetch(0, -1), True),
    (fetch(0, 100, -(1 << 31)), True),
    (fetch(0, 100, 7), False),
    (fetch(0, 100, 0, NO_UUID), False),
    (fetch(0, 100, 0, NO_UUID, b"\1" * 16), True),
])  # fmt: skip
def test_apache_kafka_fails_over_what_is_on_the_list_and_nothing_else(fetching: FetchRequest, is_meant: bool) -> None:
    answers = Answers(fetching, FETCH_VERSION, {"error_code": 0}, {"error_code": -1})
    assert bool(strange(answers)) is not is_meant
    assert strange(Answers(fetching, FETCH_VERSION, {"error_code": 0}, {"error_code": 42}))


def worded(code: int, message: str | None) -> dict[str, Any]:
    return {"error_code": code, "error_message": message}


def test_two_clusters_have_ids_of_their_own_and_the_same_words_around_them() -> None:
    request, refusal = (
        RemoveRaftVoterRequest(cluster_id="", voter_id=0, voter_directory_id=bytes(16)),
        'The given id "{}" doesn\'t match the cluster id "{}"'.format,
    )
    ours, theirs = "b2RyYWRlay1pbnRlcm9wLg", "Ji3Y-e0XTt-oWLmKPvwOFw"
    assert not strange(Answers(request, 0, worded(104, refusal("", ours)), worded(104, refusal("", theirs))))
    assert strange(Answers(request, 0, worded(104, refusal("", ours)), worded(104, refusal("x", theirs))))
    assert strange(Answers(request, 0, worded(104, refusal("", ours)), worded(104, refusal("", "another"))))


def test_a_code_may_be_told_in_the_projects_words_and_in_no_others() -> None:
    request, own = FindCoordinatorRequest(key="g"), ErrorCode.INVALID_REQUEST.message
    assert not strange(Answers(request, 3, worded(42, own), worded(42, "other words")))
    assert strange(Answers(request, 3, worded(42, "odd words"), worded(42, "other words")))
    assert strange(Answers(request, 3, worded(42, None), worded(42, "other words")))
    assert [one.path for one in strange(Answers(request, 3, worded(42, own), worded(15, "other")))] == [".error_code"]


def test_which_of_several_faults_is_told_is_left_open() -> None:
    names = ("a", "b")
    two = [FeatureUpdateKey(feature=name, max_version_level=1, upgrade_type=1) for name in names]
    for updates, is_meant in ((two, True), (two[:1], False)):
        request = UpdateFeaturesRequest(feature_updates=updates)
        assert bool(strange(Answers(request, 1, worded(95, "a is wrong"), worded(95, "b is wrong")))) is not is_meant


@pytest.mark.parametrize(("count", "is_meant"), [(500, False), (520, True)])
def test_a_request_of_too_many_items_ends_its_connection(count: int, is_meant: bool) -> None:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[0] * count)] * count
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="p", topics=topics)])
    assert bool(strange(Answers(request, 1, CLOSED, {"results": []}))) is not is_meant


def test_apache_kafka_deletes_no_share_group_without_state() -> None:
    request = DeleteGroupsRequest(groups_names=["g", "h"])

    def results(*codes: int) -> dict[str, Any]:
        return {"results": [{"group_id": name, "error_code": code} for name, code in zip("gh", codes, strict=True)]}

    assert not strange(Answers(request, 2, results(0, 69), results(-1, 69)))
    assert strange(Answers(request, 2, results(68, 69), results(-1, 69)))
    assert strange(Answers(request, 2, results(0, 69), results(-1, 0)))


def test_apache_kafkas_quorum_without_voters_in_its_log_removes_none() -> None:
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=7, voter_directory_id=bytes(16))
    assert not strange(Answers(request, 0, worded(127, None), worded(35, None)))
    assert strange(Answers(request, 0, worded(127, None), worded(42, None)))


def test_a_share_groups_members_have_as_many_partitions_but_not_the_same() -> None:
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    one, other, two = (
        {"assignment": {"topic_partitions": [{"topic_id": "t", "partitions": indexes}]}}
        for indexes in ([0], [1], [0, 1])
    )
    assert not strange(Answers(request, 1, one, other))
    assert strange(Answers(request, 1, one, two))


@pytest.mark.parametrize(
    ("partitions", "is_meant"), [((0, 9), True), ((9, 0), False), ((9, 9), False), ((0, 0), False)]
)
def test_a_marker_without_partitions_keeps_an_answer_from_coming_as_the_last(
    partitions: tuple[int, ...], is_meant: bool
) -> None:
    markers = [
        WritableTxnMarker(
            producer_id=number, producer_epoch=0, transaction_result=True, coordinator_epoch=0,
            topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[partition])],
        )
        for number, partition in enumerate(partitions)
    ]  # fmt: skip
    parts = [{"partition_index": index, "error_code": 3 if index == 9 else 0} for index in partitions]
    ours = {"markers": [{"topics": [{"name": "t", "partitions": parts}]}]}
    answers = Answers(WriteTxnMarkersRequest(markers=markers), 1, ours, NO_ANSWER)
    assert bool(strange(answers)) is not is_meant


@pytest.mark.parametrize(("member_id", "code", "forgets"), [("m", 25, True), ("", 25, False), ("m", 0, False)])
def test_worlds_come_apart_over_a_member_that_an_empty_consumer_group_does_not_know(
    member_id: str, code: int, forgets: bool
) -> None:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, rebalance_timeout_ms=1, member_id=member_id, protocol_type="consumer",
        protocols=[],
    )  # fmt: skip
    answer = {"error_code": code}
    assert comes_apart(Answers(request, 5, answer, answer)) is forgets


@pytest.mark.parametrize(("metadata", "is_meant"), [
    ("", False),
    ("0000", False),
    ("0000 00000001 0001 61 ffffffff", False),
    ("0000 00000001 0001 61 00000002 0000", False),
    ("0003 00000001 0001 61 ffffffff 00000000", False),
    ("0000 00000001", True),
    ("0000 00000001 00", False),
    ("ffff ffffffff ffffffff", True),
    ("0000 00000002 0001 61", False),
    ("0000 00000001 0002 61", True),
    ("0000 00000001 ffff 61", True),
    ("0000 00000001 0001 61 00000003 0000", True),
])  # fmt: skip
def test_apache_kafka_is_silent_over_a_subscription_that_its_decoder_does_not_foresee(
    metadata: str, is_meant: bool
) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes.fromhex(metadata))
    request = JoinGroupRequest(
        group_id="g", protocol_type="consumer", protocols=[protocol], session_timeout_ms=0, member_id=""
    )
    assert is_silent_over(request) is is_meant
    request.protocol_type = "connect"
    assert not is_silent_over(request)
