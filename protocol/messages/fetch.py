"""Fetch (1)."""

from __future__ import annotations

from protocol import types
from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.FETCH)
class FetchRequest:
    """A consumer or follower fetches records from given offsets on, optionally in a fetch session."""

    cluster_id: str | None = wire(versions="12+", nullable="12+", tag=0, default=None)  # KIP-595
    replica_id: int32 = wire(versions="0-14", default=-1)
    replica_state: ReplicaState = wire(versions="15+", tag=1, default=IMPLICIT)  # KIP-903
    max_wait_ms: int32 = wire()
    min_bytes: int32 = wire()
    max_bytes: int32 = wire(versions="3+", default=0x7FFFFFFF)  # KIP-74
    isolation_level: int8 = wire(versions="4+", default=0)  # KIP-98
    session_id: int32 = wire(versions="7+", default=0)  # KIP-227
    session_epoch: int32 = wire(versions="7+", default=-1)  # KIP-227
    topics: list[FetchTopic] = wire()
    forgotten_topics_data: list[ForgottenTopic] = wire(versions="7+", default=IMPLICIT)  # KIP-227
    rack_id: str = wire(versions="11+", default="")  # KIP-392


@struct
class ReplicaState:
    """The fetching replica and its broker epoch; -1 for a consumer."""

    replica_id: int32 = wire(default=-1)
    replica_epoch: int64 = wire(default=-1)


@struct
class FetchTopic:
    topic: str = wire(versions="0-12", default="")
    topic_id: uuid = wire(versions="13+", default=IMPLICIT)  # KIP-516
    partitions: list[FetchPartition] = wire()


@struct
class FetchPartition:
    """A partition's fetch offset, size limit, and leader epochs; -1 skips a check."""

    partition: int32 = wire()
    current_leader_epoch: int32 = wire(versions="9+", default=-1)  # KIP-320
    fetch_offset: int64 = wire()
    last_fetched_epoch: int32 = wire(versions="12+", default=-1)  # KIP-595
    log_start_offset: int64 = wire(versions="5+", default=-1)  # KIP-107
    partition_max_bytes: int32 = wire()
    replica_directory_id: uuid = wire(versions="17+", tag=0, default=IMPLICIT)  # KIP-853
    high_watermark: int64 = wire(versions="18+", tag=1, default=0x7FFFFFFFFFFFFFFF)  # KIP-1166


@struct
class ForgottenTopic:
    """Partitions that leave the fetch session."""

    topic: str = wire(versions="7-12", default="")
    topic_id: uuid = wire(versions="13+", default=IMPLICIT)  # KIP-516
    partitions: list[int32] = wire()


@message(ApiKey.FETCH)
class FetchResponse:
    """Record batches by partition, with the partition's watermarks and leader."""

    throttle_time_ms: int32 = wire(versions="1+", default=0)  # KIP-13
    error_code: int16 = wire(versions="7+", default=0)  # KIP-227
    session_id: int32 = wire(versions="7+", default=0)  # KIP-227
    responses: list[FetchableTopicResponse] = wire()
    node_endpoints: list[NodeEndpoint] = wire(versions="16+", tag=0, default=IMPLICIT)  # KIP-951


@struct
class FetchableTopicResponse:
    topic: str = wire(versions="0-12", default="")
    topic_id: uuid = wire(versions="13+", default=IMPLICIT)  # KIP-516
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """A partition's records. The last batch may be incomplete; readers drop it."""

    partition_index: int32 = wire()
    error_code: int16 = wire()
    high_watermark: int64 = wire()
    last_stable_offset: int64 = wire(versions="4+", default=-1)  # KIP-98
    log_start_offset: int64 = wire(versions="5+", default=-1)  # KIP-107
    diverging_epoch: EpochEndOffset = wire(versions="12+", tag=0, default=IMPLICIT)  # KIP-595
    current_leader: LeaderIdAndEpoch = wire(versions="12+", tag=1, default=IMPLICIT)  # KIP-595
    snapshot_id: SnapshotId = wire(versions="12+", tag=2, default=IMPLICIT)  # KIP-630
    aborted_transactions: list[AbortedTransaction] | None = wire(versions="4+", nullable="4+", default=None)  # KIP-98
    preferred_read_replica: int32 = wire(versions="11+", default=-1)  # KIP-392
    records: types.records | None = wire(nullable="0+")


@struct
class EpochEndOffset:
    """The epoch and offset at which the follower's log diverges, and to which the follower truncates."""

    epoch: int32 = wire(default=-1)
    end_offset: int64 = wire(default=-1)


@struct
class LeaderIdAndEpoch:
    """The leader and its epoch that this broker knows; -1 if unknown."""

    leader_id: int32 = wire(default=-1)
    leader_epoch: int32 = wire(default=-1)


@struct
class SnapshotId:
    """The snapshot that a KRaft follower must fetch, because the log no longer has the offset."""

    end_offset: int64 = wire(default=-1)
    epoch: int32 = wire(default=-1)


@struct
class AbortedTransaction:
    """A read-committed reader drops this producer's batches from the offset on, until its abort marker."""

    producer_id: int64 = wire()
    first_offset: int64 = wire()


@struct
class NodeEndpoint:
    """The endpoint of a leader that the partitions name."""

    node_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(nullable="0+", default=None)
