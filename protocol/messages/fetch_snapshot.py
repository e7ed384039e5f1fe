"""FetchSnapshot (59)."""

from __future__ import annotations

from protocol import types
from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64, uint16, uuid


@message(ApiKey.FETCH_SNAPSHOT)
class FetchSnapshotRequest:
    """A KRaft follower reads a part of the leader's snapshot (KIP-630)."""

    cluster_id: str | None = wire(nullable="0+", tag=0, default=None)
    replica_id: int32 = wire(default=-1)
    max_bytes: int32 = wire(default=0x7FFFFFFF)
    topics: list[TopicSnapshot] = wire()


@struct
class TopicSnapshot:
    name: str = wire()
    partitions: list[PartitionSnapshot] = wire()


@struct
class PartitionSnapshot:
    """The snapshot, and a position in it."""

    partition: int32 = wire()
    current_leader_epoch: int32 = wire()
    snapshot_id: SnapshotId = wire()
    position: int64 = wire()
    replica_directory_id: uuid = wire(versions="1+", tag=0, default=IMPLICIT)  # KIP-853


@struct
class SnapshotId:
    end_offset: int64 = wire()
    epoch: int32 = wire()


@message(ApiKey.FETCH_SNAPSHOT)
class FetchSnapshotResponse:
    """Bytes of the snapshot, from the requested position on."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    topics: list[ResponseTopicSnapshot] = wire()
    node_endpoints: list[NodeEndpoint] = wire(versions="1+", tag=0, default=IMPLICIT)  # KIP-853


@struct
class ResponseTopicSnapshot:
    name: str = wire()
    partitions: list[ResponsePartitionSnapshot] = wire()


@struct
class ResponsePartitionSnapshot:
    """The snapshot, and a position in it."""

    index: int32 = wire()
    error_code: int16 = wire()
    snapshot_id: SnapshotId = wire()
    current_leader: LeaderIdAndEpoch = wire(tag=0, default=IMPLICIT)
    size: int64 = wire()
    position: int64 = wire()
    unaligned_records: types.records = wire()


@struct
class LeaderIdAndEpoch:
    leader_id: int32 = wire()
    leader_epoch: int32 = wire()


@struct
class NodeEndpoint:
    node_id: int32 = wire()
    host: str = wire()
    port: uint16 = wire()
