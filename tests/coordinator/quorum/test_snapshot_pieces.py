"""Tests FetchSnapshot answers of a quorum leader (KIP-630)."""

from __future__ import annotations

import pytest

from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leader import MAX_FETCH_BYTES
from coordinator.quorum.pieces import PieceWish, SnapshotPiece
from coordinator.quorum.snapshot_pieces import piece_response, piece_wish
from protocol.errors import ErrorCode
from protocol.messages import fetch_snapshot
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tests.coordinator.quorum.leaders import CLUSTER, LEADER, LISTENER, OBSERVER, a_leader

SNAPSHOT = SnapshotId(15, 3)
SNAPSHOTS = (SnapshotId(0, 0), SnapshotId(5, 1), SNAPSHOT)


def wish(
    cluster_id: str | None = CLUSTER,
    topic: str = "__cluster_metadata",
    partition: int = 0,
    epoch: int = 3,
    snapshot: SnapshotId = SNAPSHOT,
    max_bytes: int = 100,
    version: int = 1,
) -> PieceWish | FetchSnapshotResponse:
    data = fetch_snapshot.PartitionSnapshot(
        partition=partition,
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=7,
    )
    request = FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=OBSERVER,
        max_bytes=max_bytes,
        topics=[fetch_snapshot.TopicSnapshot(name=topic, partitions=[data])],
    )
    return piece_wish(a_leader(), request, version, LISTENER, SNAPSHOTS)


def code_of(response: object) -> int:
    assert isinstance(response, FetchSnapshotResponse)
    if response.error_code:
        return response.error_code
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert partition.unaligned_records == b""
    return partition.error_code


def test_a_snapshot_that_is_there_is_read_from_the_wanted_byte_on() -> None:
    assert wish() == PieceWish(SNAPSHOT, 7, 100)


@pytest.mark.parametrize(("max_bytes", "size"), [(-1, 1), (0, 1), (1 << 31, MAX_FETCH_BYTES)])
def test_a_piece_is_never_empty_and_never_huge(max_bytes: int, size: int) -> None:
    assert wish(max_bytes=max_bytes) == PieceWish(SNAPSHOT, 7, size)


def test_what_cannot_be_handed_out_has_its_error() -> None:
    assert code_of(wish(cluster_id="another")) == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert code_of(wish(topic="t")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(wish(partition=1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(wish(epoch=2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(wish(epoch=4)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code_of(wish(snapshot=SnapshotId(16, 3))) == ErrorCode.SNAPSHOT_NOT_FOUND
    assert code_of(wish(snapshot=SnapshotId(15, -3))) == ErrorCode.SNAPSHOT_NOT_FOUND


def test_the_snapshot_of_a_node_s_own_formatting_goes_to_nobody() -> None:
    assert code_of(wish(snapshot=SnapshotId(0, 0))) == ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_request_without_partitions_is_refused() -> None:
    request = FetchSnapshotRequest(cluster_id=CLUSTER, topics=[])
    assert code_of(piece_wish(a_leader(), request, 1, LISTENER, SNAPSHOTS)) == ErrorCode.INVALID_REQUEST
    request.topics = [fetch_snapshot.TopicSnapshot(name="__cluster_metadata", partitions=[])]
    assert code_of(piece_wish(a_leader(), request, 1, LISTENER, SNAPSHOTS)) == ErrorCode.INVALID_REQUEST


def test_a_piece_says_whose_it_is_and_how_large_the_whole_is() -> None:
    response = piece_response(a_leader(), PieceWish(SNAPSHOT, 7, 3), SnapshotPiece(b"abc", 12), 1, LISTENER)
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert (partition.size, partition.position, partition.unaligned_records) == (12, 7, b"abc")
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == SNAPSHOT
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (LEADER, 3)
    assert response.node_endpoints[0].host == "controller.example"
    assert piece_response(a_leader(), PieceWish(SNAPSHOT, 7, 3), None, 0, LISTENER).node_endpoints == []


@pytest.mark.parametrize("position", [-1, 12, 1 << 40])
def test_a_position_outside_of_the_snapshot_is_out_of_range(position: int) -> None:
    response = piece_response(a_leader(), PieceWish(SNAPSHOT, position, 3), SnapshotPiece(b"", 12), 1, LISTENER)
    assert code_of(response) == ErrorCode.POSITION_OUT_OF_RANGE


def test_a_snapshot_that_was_deleted_meanwhile_is_not_found() -> None:
    assert code_of(piece_response(a_leader(), PieceWish(SNAPSHOT, 0, 3), None, 1, LISTENER)) == (
        ErrorCode.SNAPSHOT_NOT_FOUND
    )
