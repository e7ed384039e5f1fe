"""The leader of a quorum whose only voter is this node: its answers to replicas that fetch its log, and to other
controllers. Sans-IO.

Only committed records are sent. This node may lose records that are not flushed; an observer that has applied them
would then have to truncate them. Because the only voter commits with its own flush, this delays no replica.

Source: Kafka's KafkaRaftClient and ReplicatedLog.validateOffsetAndEpoch (KIP-595, 630, 853).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.replicas import Observers, ReplicaKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from protocol.messages.fetch import SnapshotId as FetchedSnapshotId
from protocol.types import Uuid

BOOTSTRAP_SNAPSHOT: Final = SnapshotId(0, 0)
"""The snapshot of a node's own formatting, which is also in the log and is never sent."""

MAX_FETCH_BYTES: Final = 8 << 20
"""Maximum bytes of records in an answer, whatever the request allows (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

FIRST_REPLICA_STATE: Final = 15
"""First version of Fetch with a replica's id in its state (KIP-903)."""

FIRST_NODE_ENDPOINTS: Final = 17
"""First version of Fetch whose response has the leader's endpoint (KIP-853)."""

NO_OFFSET: Final = -1


class LeaderLog(Protocol):
    """The part of the leader's log that replicas may fetch."""

    epoch: int

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def epoch_end(self, epoch: int) -> LogEnd:
        """Returns the last epoch up to this epoch that the log has, and its end offset."""
        ...

    def committed_records(self, offset: int, max_bytes: int) -> memoryview:
        """Returns whole committed batches from this offset on: at most `max_bytes`, but at least one batch."""
        ...


class Voter(NamedTuple):
    """This node as the quorum's voter."""

    cluster_id: str
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    """The addresses of its controller; voters connect to the first."""

    @property
    def node_id(self) -> int:
        return self.key.node_id

    def endpoint(self, listener: str) -> Endpoint | None:
        """Returns its endpoint on a listener of that name."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name.upper() == listener.upper()), None)

    def is_of_cluster(self, cluster_id: str | None) -> bool:
        """True if a request names this cluster, or none."""
        return cluster_id is None or cluster_id == self.cluster_id

    def is_meant_by(self, node_id: int, directory_id: Uuid) -> bool:
        """True if a request is meant for this node. A request of an older version names no receiver, and a request
        whose sender doesn't know the receiver's directory has no directory id."""
        if node_id < 0:
            return True
        return node_id == self.node_id and (not any(directory_id) or directory_id == self.key.directory_id)


class Fetched(NamedTuple):
    """The answer to a Fetch, and True if the replica should wait for a better answer."""

    response: FetchResponse
    may_wait: bool = False


class QuorumLeader:
    """The leader of the metadata quorum."""

    def __init__(self, voter: Voter, log: LeaderLog) -> None:
        self.voter = voter
        self.metadata_log = log
        self.observers = Observers()

    def error_of_epoch(self, epoch: int) -> ErrorCode:
        """Returns the error of a request to the leader of that epoch; NONE if that is the present epoch."""
        if epoch < self.metadata_log.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > self.metadata_log.epoch else ErrorCode.NONE

    def fetch(
        self, request: FetchRequest, version: int, listener: str, snapshots: Sequence[SnapshotId], now_ms: int
    ) -> Fetched:
        """Answers a replica's Fetch. `snapshots` are the snapshots that may be fetched, oldest first."""
        if not self.voter.is_of_cluster(request.cluster_id):
            return Fetched(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, responses=[]))
        position = _only_partition(request)
        if position is None:
            return Fetched(FetchResponse(error_code=ErrorCode.INVALID_REQUEST, responses=[]))
        if (
            request.max_wait_ms < 0
            or position.fetch_offset < 0
            or not 0 <= position.last_fetched_epoch <= position.current_leader_epoch
        ):
            data = self._data(ErrorCode.INVALID_REQUEST, NO_OFFSET)
        else:
            state = request.replica_state
            node_id = state.replica_id if version >= FIRST_REPLICA_STATE else request.replica_id
            key = ReplicaKey(node_id, position.replica_directory_id)
            data = self._fetched(key, position, request.max_bytes, snapshots, now_ms)
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=TOPIC_ID, partitions=[data])
        response = FetchResponse(error_code=ErrorCode.NONE, responses=[topic], node_endpoints=[])
        endpoint = self.voter.endpoint(listener)
        if version >= FIRST_NODE_ENDPOINTS and endpoint is not None:
            response.node_endpoints.append(
                NodeEndpoint(node_id=self.voter.node_id, host=endpoint.host, port=endpoint.port)
            )
        return Fetched(response, may_wait=request.max_wait_ms > 0 and not _has_news(data, position))

    def _data(self, code: ErrorCode, high_watermark: int) -> PartitionData:
        return PartitionData(
            partition_index=0,
            error_code=code,
            high_watermark=high_watermark,
            log_start_offset=self.metadata_log.start_offset,
            current_leader=LeaderIdAndEpoch(leader_id=self.voter.node_id, leader_epoch=self.metadata_log.epoch),
            records=b"",
        )

    def _fetched(
        self, key: ReplicaKey, position: FetchPartition, max_bytes: int, snapshots: Sequence[SnapshotId], now_ms: int
    ) -> PartitionData:
        code = self.error_of_epoch(position.current_leader_epoch)
        if code is ErrorCode.NONE and key.node_id == self.voter.node_id:
            code = ErrorCode.UNKNOWN_SERVER_ERROR  # another process has this node's id: Kafka has no better code
        if code is not ErrorCode.NONE:
            return self._data(code, NO_OFFSET)
        log, offset = self.metadata_log, position.fetch_offset
        data = self._data(ErrorCode.NONE, log.high_watermark)
        snapshot_id = self._snapshot_for(offset, position.last_fetched_epoch, snapshots)
        if snapshot_id is not None:
            data.snapshot_id = FetchedSnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch)
            return data
        end = self._epoch_end(position.last_fetched_epoch, snapshots)
        is_start = offset == 0 and log.start_offset == 0
        if not is_start and (end.epoch != position.last_fetched_epoch or end.offset < offset):
            data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
            return data
        if key.node_id >= 0:
            self.observers.fetched(key, offset, log.high_watermark, now_ms)
        if offset < log.high_watermark:
            data.records = log.committed_records(offset, min(max(max_bytes, 0), MAX_FETCH_BYTES))
        return data

    def _snapshot_for(self, offset: int, epoch: int, snapshots: Sequence[SnapshotId]) -> SnapshotId | None:
        """Returns the snapshot that a replica must fetch instead of records; None if the log has the records."""
        if not snapshots:
            return None
        if offset == 0 and snapshots[-1] != BOOTSTRAP_SNAPSHOT:
            return snapshots[-1]
        start, oldest = self.metadata_log.start_offset, snapshots[0]
        if start == 0 and offset == 0:
            return None
        if offset < start or (offset == start and epoch != oldest.epoch) or epoch < oldest.epoch:
            return snapshots[-1]
        return None

    def _epoch_end(self, epoch: int, snapshots: Sequence[SnapshotId]) -> LogEnd:
        """Returns the end of an epoch. An epoch whose records are no longer in the log ends at the oldest snapshot."""
        end = self.metadata_log.epoch_end(epoch)
        if snapshots and (end.offset, end.epoch) == (snapshots[0].offset, epoch):
            return LogEnd(snapshots[0].offset, snapshots[0].epoch)
        return end


def _only_partition(request: FetchRequest) -> FetchPartition | None:
    """Returns the metadata partition, if the request is only for it."""
    if len(request.topics) != 1 or request.topics[0].topic_id != TOPIC_ID:
        return None
    partitions = request.topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == 0 else None


def _has_news(data: PartitionData, position: FetchPartition) -> bool:
    """True if the answer has something new for the replica: records, an error, a divergence, a snapshot, or a higher
    high watermark (KIP-1166)."""
    return bool(
        data.error_code
        or data.records
        or data.diverging_epoch.epoch >= 0
        or data.snapshot_id.end_offset >= 0
        or data.high_watermark > position.high_watermark
    )
