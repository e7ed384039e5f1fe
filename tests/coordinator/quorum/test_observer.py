"""Tests an observer's steps after answers of leaders, of other nodes, and impossible ones."""

from __future__ import annotations

import pytest

from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.observer import (
    Append,
    AskAgain,
    BeginSnapshot,
    DropSnapshot,
    FetchLimits,
    Observer,
    Refused,
    Step,
    Truncate,
    WritePiece,
)
from protocol.errors import ErrorCode
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

LEADER, EPOCH = 1, 5
VOTERS = {1: Location("a", 9093), 2: Location("b", 9093)}
DIRECTORY = bytes(15) + b"\x77"
SNAPSHOT = SnapshotId(100, 4)
HUGE = (1 << 63) - 1


def observer(leader_id: int = LEADER, epoch: int = EPOCH) -> Observer:
    leadership = Leadership(QuorumState(leader_id, epoch), VOTERS, ())
    return Observer("cluster", 7, DIRECTORY, leadership, FetchLimits(fetch_bytes=1000, snapshot_bytes=10))


def answer(
    records: bytes = b"",
    *,
    code: int = 0,
    leader: tuple[int, int] = (LEADER, EPOCH),
    high_watermark: int = 50,
    diverging: tuple[int, int] | None = None,
    snapshot: tuple[int, int] | None = None,
    topic_id: bytes = TOPIC_ID,
    endpoints: tuple[fetch.NodeEndpoint, ...] = (),
) -> FetchResponse:
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=high_watermark,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        records=records,
    )
    if diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    if snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1])
    topic = fetch.FetchableTopicResponse(topic_id=topic_id, partitions=[partition])
    return FetchResponse(responses=[topic], node_endpoints=list(endpoints))


def piece(
    content: bytes,
    *,
    position: int = 0,
    size: int = 25,
    code: int = 0,
    leader: tuple[int, int] = (LEADER, EPOCH),
    snapshot_id: SnapshotId = SNAPSHOT,
) -> FetchSnapshotResponse:
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        index=0,
        error_code=code,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        size=size,
        position=position,
        unaligned_records=content,
    )
    topic = fetch_snapshot.ResponseTopicSnapshot(name="__cluster_metadata", partitions=[partition])
    return FetchSnapshotResponse(error_code=0, topics=[topic])


def fetching() -> Observer:
    """Returns an observer that must fetch a snapshot."""
    observing = observer()
    assert observing.fetched(answer(snapshot=SNAPSHOT), 0) == BeginSnapshot(SNAPSHOT)
    return observing


def reason(step: Step) -> str:
    assert isinstance(step, Refused)
    return step.reason


def test_a_fetch_says_who_asks_and_where_its_log_ends() -> None:
    request = observer().request(LogEnd(42, 3), 40)
    assert isinstance(request, FetchRequest)
    assert (request.cluster_id, request.replica_state.replica_id, request.max_wait_ms) == ("cluster", 7, 500)
    ((topic,), (partition,)) = request.topics, request.topics[0].partitions
    assert topic.topic_id == TOPIC_ID
    assert (partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch) == (42, 3, EPOCH)
    assert (partition.high_watermark, partition.replica_directory_id) == (40, DIRECTORY)


def test_an_unknown_high_watermark_is_told_as_such() -> None:
    request = observer().request(LogEnd(0, 0), None)
    assert isinstance(request, FetchRequest)
    assert request.topics[0].partitions[0].high_watermark == -1


def test_the_leader_s_records_are_appended() -> None:
    assert observer().fetched(answer(b"batches", high_watermark=43), 40) == Append(memoryview(b"batches"), 43)


def test_who_does_not_lead_is_left_for_who_does() -> None:
    observing = observer(leader_id=-1, epoch=4)
    step = observing.fetched(answer(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 5)), 0)
    assert step == AskAgain()
    assert observing.leadership.leader == VOTERS[2]


def test_a_leader_that_nobody_configured_is_found_by_its_endpoint() -> None:
    observing = observer()
    endpoint = fetch.NodeEndpoint(node_id=3, host="c", port=19093)
    observing.fetched(answer(code=ErrorCode.FENCED_LEADER_EPOCH, leader=(3, 6), endpoints=(endpoint,)), 0)
    assert observing.leadership.leader == Location("c", 19093)


def test_while_nobody_leads_the_others_are_asked_after_a_pause() -> None:
    observing = observer()
    step = observing.fetched(answer(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(-1, EPOCH)), 0)
    assert "names no other leader" in reason(step)
    assert observing.leadership.leader is None


def test_a_leader_found_by_its_own_answer_is_believed_at_once() -> None:
    observing = observer(leader_id=-1)
    assert isinstance(observing.fetched(answer(b"batches"), 0), Append)


def test_records_of_a_later_epoch_are_fetched_again_in_that_epoch() -> None:
    assert observer().fetched(answer(b"batches", leader=(2, EPOCH + 1)), 0) == AskAgain()


def test_records_of_an_earlier_epoch_are_left_where_they_are() -> None:
    assert "is not from the leader of epoch 5" in reason(observer().fetched(answer(b"batches", leader=(1, 4)), 0))


def test_two_leaders_in_one_epoch_are_not_believed() -> None:
    assert "names node 2 as the leader of epoch 5" in reason(observer().fetched(answer(b"x", leader=(2, EPOCH)), 0))


@pytest.mark.parametrize("code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNKNOWN_SERVER_ERROR, 12345])
def test_an_error_of_the_leader_s_is_told_and_others_are_asked(code: int) -> None:
    observing = observer()
    assert reason(observing.fetched(answer(code=code), 0)).startswith("the answer to a Fetch is ")
    assert observing.leadership.leader is None


def test_an_answer_about_something_else_is_none() -> None:
    assert "is not of __cluster_metadata" in reason(observer().fetched(answer(topic_id=DIRECTORY), 0))
    assert "is not of __cluster_metadata" in reason(observer().fetched(FetchResponse(responses=[]), 0))


def test_what_the_leader_has_not_is_truncated() -> None:
    assert observer().fetched(answer(diverging=(4, 30)), 30) == Truncate(4, 30)


@pytest.mark.parametrize("end_offset", [29, 0, -1, -HUGE])
def test_what_is_committed_is_never_truncated(end_offset: int) -> None:
    assert "is committed here" in reason(observer().fetched(answer(diverging=(4, end_offset)), 30))


@pytest.mark.parametrize("snapshot", [(30, 4), (29, 4), (0, 0), (100, -1), (-1, 4), (-HUGE, 4)])
def test_a_snapshot_of_what_is_committed_here_is_not_fetched(snapshot: tuple[int, int]) -> None:
    assert "the leader offers a snapshot" in reason(observer().fetched(answer(snapshot=snapshot), 30))


def test_a_snapshot_is_fetched_in_pieces() -> None:
    observing = fetching()
    positions = []
    for content in (b"0123456789", b"0123456789", b"01234"):
        request = observing.request(LogEnd(0, 0), None)
        assert isinstance(request, FetchSnapshotRequest)
        positions.append(request.topics[0].partitions[0].position)
        step = observing.snapshot_fetched(piece(content, position=positions[-1]))
        assert step == WritePiece(SNAPSHOT, positions[-1], memoryview(content), len(content) == 5)
    assert positions == [0, 10, 20]
    assert isinstance(observing.request(LogEnd(100, 4), 100), FetchRequest)


def test_a_piece_whose_answer_was_lost_is_asked_for_again() -> None:
    observing = fetching()
    observing.snapshot_fetched(piece(b"0123456789"))
    first = observing.request(LogEnd(0, 0), None)
    assert first == observing.request(LogEnd(0, 0), None)


def test_another_leader_s_snapshot_is_begun_anew() -> None:
    observing = fetching()
    observing.snapshot_fetched(piece(b"0123456789"))
    observing.leadership.names_leader(2, EPOCH + 1)
    assert isinstance(observing.request(LogEnd(0, 0), None), FetchRequest)


@pytest.mark.parametrize("code", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_the_leader_has_no_more_is_given_up(code: ErrorCode) -> None:
    observing = fetching()
    assert observing.snapshot_fetched(piece(b"", code=code)) == DropSnapshot(SNAPSHOT)
    assert isinstance(observing.request(LogEnd(0, 0), None), FetchRequest)


@pytest.mark.parametrize(
    "wrong",
    [
        piece(b"x", position=1),
        piece(b"x", position=-1),
        piece(b"x", position=HUGE),
        piece(b"x", snapshot_id=SnapshotId(101, 4)),
        piece(b"x" * 26),
        piece(b"x", size=-1),
        piece(b"", size=HUGE),
    ],
)
def test_a_piece_that_does_not_fit_ends_the_snapshot(wrong: FetchSnapshotResponse) -> None:
    observing = fetching()
    assert "the answer to a FetchSnapshot is for" in reason(observing.snapshot_fetched(wrong))
    assert isinstance(observing.request(LogEnd(0, 0), None), FetchRequest)


def test_a_piece_that_nobody_asked_for_is_none() -> None:
    assert "was not sent" in reason(observer().snapshot_fetched(piece(b"x")))
