"""Tests a quorum leader's answers to Fetch (KIP-595), as KafkaRaftClient.handleFetchRequest gives them."""

from __future__ import annotations

import pytest

from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leader import MAX_FETCH_BYTES
from coordinator.quorum.replicas import MAX_REPLICAS, SESSION_MS, Observers, ReplicaKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import LeaderIdAndEpoch, NodeEndpoint, ReplicaState
from tests.coordinator.quorum.leaders import (
    DIRECTORY,
    LEADER,
    NEWEST,
    NOW_MS,
    OBSERVER,
    OTHER_DIRECTORY,
    SaidLog,
    a_fetch,
    a_leader,
    fetched,
    partition_of,
)

BOOTSTRAP = SnapshotId(0, 0)


def test_an_observer_gets_what_is_committed_from_its_end_on() -> None:
    answer = fetched(a_leader(SaidLog(committed=18)), a_fetch(15, 3))
    partition = partition_of(answer)
    assert not answer.may_wait
    assert (partition.error_code, bytes(partition.records or b"")) == (0, bytes([15, 16, 17]))
    assert (partition.high_watermark, partition.log_start_offset) == (18, 0)
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=LEADER, leader_epoch=3)


def test_records_that_are_not_committed_are_handed_to_nobody() -> None:
    answer = fetched(a_leader(SaidLog(committed=15)), a_fetch(15, 3, high_watermark=15))
    assert not partition_of(answer).records
    assert answer.may_wait


def test_the_leader_is_named_with_its_endpoint_from_version_17_on() -> None:
    leader = a_leader()
    (endpoint,) = fetched(leader, a_fetch(15, 3), version=17).response.node_endpoints
    assert endpoint == NodeEndpoint(node_id=LEADER, host="controller.example", port=9093)
    assert fetched(leader, a_fetch(15, 3), version=16).response.node_endpoints == []
    assert leader.fetch(a_fetch(15, 3), NEWEST, "INTERNAL", (), NOW_MS).response.node_endpoints == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topic_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"partition": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_fetch_of_something_else_is_refused_as_a_whole(fields: dict[str, object], code: ErrorCode) -> None:
    answer = fetched(a_leader(), a_fetch(15, 3, **fields))
    assert (answer.response.error_code, answer.response.responses, answer.may_wait) == (code, [], False)


def test_a_fetch_that_names_no_cluster_is_of_this_one() -> None:
    assert partition_of(fetched(a_leader(), a_fetch(15, 3, cluster_id=None))).records


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": 4}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": 2, "last_fetched_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 4}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": (1 << 31) - 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica_state": ReplicaState(replica_id=LEADER)}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_names_the_leader_and_its_epoch(fields: dict[str, object], code: ErrorCode) -> None:
    leader = a_leader()
    answer = fetched(leader, a_fetch(15, 3, **fields))
    partition = partition_of(answer)
    assert (partition.error_code, partition.high_watermark, partition.records) == (code, -1, b"")
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=LEADER, leader_epoch=3)
    assert not answer.may_wait
    assert leader.observers.active(NOW_MS) == []


def test_an_observer_at_the_end_waits() -> None:
    assert fetched(a_leader(), a_fetch(20, 3)).may_wait
    assert not fetched(a_leader(), a_fetch(20, 3, max_wait_ms=0)).may_wait


def test_an_observer_at_the_end_that_knows_an_older_high_watermark_is_answered_at_once() -> None:
    assert not fetched(a_leader(), a_fetch(20, 3, high_watermark=19)).may_wait
    assert not fetched(a_leader(), a_fetch(20, 3, high_watermark=-1)).may_wait


@pytest.mark.parametrize(
    ("offset", "epoch", "end"),
    [
        (12, 1, (1, 10)),  # records of the old epoch that this leader never had
        (25, 3, (3, 20)),  # more than this leader has
        (12, 2, (1, 10)),  # an epoch that this leader never saw
        (5, 0, (0, 0)),
    ],
)
def test_a_log_that_is_no_prefix_is_told_where_it_parts(offset: int, epoch: int, end: tuple[int, int]) -> None:
    leader = a_leader()
    answer = fetched(leader, a_fetch(offset, epoch))
    diverging = partition_of(answer).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == end
    assert not partition_of(answer).records
    assert not answer.may_wait
    assert leader.observers.active(NOW_MS) == []


def test_an_empty_log_begins_at_the_start() -> None:
    assert partition_of(fetched(a_leader(), a_fetch(0, 0), BOOTSTRAP)).records == memoryview(bytes(range(20)))


@pytest.mark.parametrize(
    ("offset", "epoch", "start"),
    [
        (0, 0, 0),  # an empty log has a snapshot sooner than all records
        (3, 1, 5),  # these records are gone
        (5, 0, 5),  # the log's start, and not the records before it
        (7, 0, 5),  # records of an epoch before the oldest snapshot
    ],
)
def test_who_is_before_the_log_is_sent_to_the_latest_snapshot(offset: int, epoch: int, start: int) -> None:
    answer = fetched(a_leader(SaidLog(start=start)), a_fetch(offset, epoch), SnapshotId(5, 1), SnapshotId(15, 3))
    snapshot_id = partition_of(answer).snapshot_id
    assert (snapshot_id.end_offset, snapshot_id.epoch) == (15, 3)
    assert not answer.may_wait


def test_who_has_all_before_the_log_s_start_gets_records() -> None:
    log = SaidLog(start=5)
    assert partition_of(fetched(a_leader(log), a_fetch(5, 1), SnapshotId(5, 1))).records == memoryview(
        bytes(range(5, 20))
    )


@pytest.mark.parametrize(("max_bytes", "size"), [(3, 3), (0, 1), (-1, 1), (1 << 31, 5)])
def test_no_more_bytes_are_answered_than_wanted_and_one_batch_at_least(max_bytes: int, size: int) -> None:
    assert len(partition_of(fetched(a_leader(), a_fetch(15, 3, max_bytes=max_bytes))).records or b"") == size
    assert MAX_FETCH_BYTES == 8 << 20


def test_an_observer_s_progress_is_noted_by_node_and_directory() -> None:
    leader = a_leader()
    fetched(leader, a_fetch(15, 3))
    fetched(leader, a_fetch(20, 3), now_ms=NOW_MS + 1)
    fetched(leader, a_fetch(18, 3, replica_directory_id=DIRECTORY), now_ms=NOW_MS + 2)
    fetched(leader, a_fetch(18, 3, replica_state=ReplicaState()), now_ms=NOW_MS + 2)  # a consumer
    lagging, current = leader.observers.active(NOW_MS + 2)[::-1]
    if lagging.end_offset == 20:
        lagging, current = current, lagging
    assert (current.key, current.end_offset) == (ReplicaKey(OBSERVER, OTHER_DIRECTORY), 20)
    assert (current.fetched_ms, current.caught_up_ms) == (NOW_MS + 1, NOW_MS + 1)
    assert (lagging.end_offset, lagging.caught_up_ms) == (18, -1)


def test_an_old_version_names_the_replica_in_its_request() -> None:
    leader = a_leader()
    fetched(leader, a_fetch(15, 3, replica_id=7, replica_state=ReplicaState()), version=14)
    (observer,) = leader.observers.active(NOW_MS)
    assert observer.key.node_id == 7


def test_an_observer_was_caught_up_when_it_had_the_end_of_its_fetch_before() -> None:
    observers, key = Observers(), ReplicaKey(1, OTHER_DIRECTORY)
    observers.fetched(key, 5, 10, 1_000)
    observers.fetched(key, 10, 30, 2_000)
    (observer,) = observers.active(2_000)
    assert observer.caught_up_ms == 1_000


def test_an_observer_that_fetches_no_more_is_forgotten() -> None:
    observers = Observers()
    observers.fetched(ReplicaKey(1, OTHER_DIRECTORY), 5, 10, 1_000)
    assert observers.active(999 + SESSION_MS)
    assert observers.active(1_000 + SESSION_MS) == []
    assert observers.active(1_000) == []


def test_ids_without_end_are_not_remembered_without_end() -> None:
    observers = Observers()
    for node_id in range(MAX_REPLICAS + 10):
        observers.fetched(ReplicaKey(node_id, OTHER_DIRECTORY), 0, 0, 1)
    remembered = observers.active(1)
    assert len(remembered) == MAX_REPLICAS
    assert remembered[0].key.node_id == 10
