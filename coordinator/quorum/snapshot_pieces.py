"""Answers of a quorum's leader to FetchSnapshot: pieces of its snapshots (KIP-630).

Source: KafkaRaftClient.handleFetchSnapshotRequest.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.leader import BOOTSTRAP_SNAPSHOT, MAX_FETCH_BYTES, QuorumLeader
from coordinator.quorum.pieces import PieceWish, SnapshotPiece
from protocol.errors import ErrorCode
from protocol.messages import fetch_snapshot
from protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)

FIRST_NODE_ENDPOINTS: Final = 1
"""First version of FetchSnapshot whose response has the leader's endpoint (KIP-853)."""

NO_SNAPSHOT: Final = SnapshotId(0, 0)


def piece_wish(
    leader: QuorumLeader, request: FetchSnapshotRequest, version: int, listener: str, snapshots: Container[SnapshotId]
) -> PieceWish | FetchSnapshotResponse:
    """Returns the piece to read, or the response if there is none."""
    if not leader.voter.is_of_cluster(request.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[])
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST, topics=[])
    (topic,) = request.topics
    (requested,) = topic.partitions
    if (topic.name, requested.partition) != (METADATA_TOPIC, 0):
        data = _data(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, index=requested.partition)
        return _response(leader, data, version, listener, topic.name)
    snapshot_id = SnapshotId(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
    code = leader.error_of_epoch(requested.current_leader_epoch)
    if code is ErrorCode.NONE and (snapshot_id == BOOTSTRAP_SNAPSHOT or snapshot_id not in snapshots):
        code = ErrorCode.SNAPSHOT_NOT_FOUND
    if code:
        return _response(leader, _led(leader, _data(code)), version, listener)
    return PieceWish(snapshot_id, requested.position, min(max(request.max_bytes, 1), MAX_FETCH_BYTES))


def piece_response(
    leader: QuorumLeader, wish: PieceWish, piece: SnapshotPiece | None, version: int, listener: str
) -> FetchSnapshotResponse:
    """Returns the response with the piece; `piece` is None if the snapshot is gone."""
    if piece is None:
        data = _data(ErrorCode.SNAPSHOT_NOT_FOUND)
    elif not 0 <= wish.position < piece.size_bytes:
        data = _data(ErrorCode.POSITION_OUT_OF_RANGE)
    else:
        data = _data(ErrorCode.NONE, wish.snapshot_id)
        data.size, data.position, data.unaligned_records = piece.size_bytes, wish.position, piece.content
    return _response(leader, _led(leader, data), version, listener)


def _data(code: ErrorCode, snapshot_id: SnapshotId = NO_SNAPSHOT, index: int = 0) -> ResponsePartitionSnapshot:
    return ResponsePartitionSnapshot(
        index=index,
        error_code=code,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        size=0,
        position=0,
        unaligned_records=b"",
    )


def _led(leader: QuorumLeader, data: ResponsePartitionSnapshot) -> ResponsePartitionSnapshot:
    data.current_leader = LeaderIdAndEpoch(leader_id=leader.voter.node_id, leader_epoch=leader.metadata_log.epoch)
    return data


def _response(
    leader: QuorumLeader, data: ResponsePartitionSnapshot, version: int, listener: str, topic: str = METADATA_TOPIC
) -> FetchSnapshotResponse:
    response = FetchSnapshotResponse(
        error_code=ErrorCode.NONE, topics=[ResponseTopicSnapshot(name=topic, partitions=[data])], node_endpoints=[]
    )
    endpoint = leader.voter.endpoint(listener)
    if version >= FIRST_NODE_ENDPOINTS and endpoint is not None:
        response.node_endpoints.append(
            NodeEndpoint(node_id=leader.voter.node_id, host=endpoint.host, port=endpoint.port)
        )
    return response
