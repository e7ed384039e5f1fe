"""An observer of the metadata quorum: its next request, and the step after an answer. Sans-IO.

    observer.request(end, high_watermark)  → a Fetch, or a FetchSnapshot while one is being fetched
    observer.answered(response)            → one Step: append, truncate, begin, write or give up a snapshot, or nothing

The caller carries out the step and asks again. Answers are trusted only as far as they can be checked: epochs never
go back, committed records are never truncated, and a snapshot's pieces follow each other.
Source: KafkaRaftClient.buildFetchRequest, handleFetchResponse, handleFetchSnapshotResponse; KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.leadership import Leadership
from coordinator.quorum.log_end import LogEnd
from protocol.errors import ErrorCode, error_code
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.types import Uuid

UNKNOWN_OFFSET: Final = -1
"""A high watermark that is unknown (KIP-1166)."""

NO_BROKER_EPOCH: Final = -1


class Append(NamedTuple):
    """Appends batches after the log's end, perhaps none, with the leader's high watermark."""

    records: memoryview
    high_watermark: int


class Truncate(NamedTuple):
    """Truncates the log, because the leader has other records from here on: its `epoch`, which this log may not have,
    ends at this offset."""

    epoch: int
    end_offset: int


class BeginSnapshot(NamedTuple):
    """Begins to fetch the leader's snapshot, because the leader has no records from the log's end on."""

    snapshot_id: SnapshotId


class WritePiece(NamedTuple):
    """Writes the next bytes of that snapshot, perhaps its last."""

    snapshot_id: SnapshotId
    position: int
    content: memoryview
    is_last: bool


class DropSnapshot(NamedTuple):
    """Drops that snapshot, which the leader no longer has."""

    snapshot_id: SnapshotId


class AskAgain(NamedTuple):
    """Sends the next request at once, perhaps to another controller."""


class Refused(NamedTuple):
    """Sends the next request after a pause, because the answer is useless, and the next may be so too."""

    reason: str


Step: TypeAlias = "Append | Truncate | BeginSnapshot | WritePiece | DropSnapshot | AskAgain | Refused"

AGAIN: Final = AskAgain()

ELSEWHERE: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH}
)
"""Errors of a node that doesn't lead in the requested epoch: the answer names the leader."""


class FetchLimits(NamedTuple):
    """The limits of a request's bytes, and of the leader's wait for news."""

    fetch_bytes: int = 1 << 20
    """controller.quorum.fetch.max.bytes"""
    snapshot_bytes: int = 1 << 20
    """controller.quorum.fetch.snapshot.max.bytes"""
    max_wait_ms: int = 500
    """KafkaRaftClient.MAX_FETCH_WAIT_MS"""


class Fetching(NamedTuple):
    """The progress of fetching a snapshot."""

    snapshot_id: SnapshotId
    position: int
    epoch: int
    """The epoch of the leader whose snapshot is being fetched. Another leader's snapshot may have the same name and
    other bytes."""


class Observer:
    """A node's view of the quorum, without a vote."""

    def __init__(
        self, cluster_id: str, node_id: int, directory_id: Uuid, leadership: Leadership, limits: FetchLimits
    ) -> None:
        self.leadership = leadership
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._directory_id = directory_id
        self._limits = limits
        self._fetching: Fetching | None = None

    def request(self, end: LogEnd, high_watermark: int | None) -> FetchRequest | FetchSnapshotRequest:
        """Returns the next request to the leader."""
        fetching = self._fetching
        if fetching is not None and fetching.epoch == self.leadership.epoch:
            return self._snapshot_request(fetching)
        self._fetching = None
        return self._fetch_request(end, UNKNOWN_OFFSET if high_watermark is None else high_watermark)

    def _fetch_request(self, end: LogEnd, high_watermark: int) -> FetchRequest:
        partition = fetch.FetchPartition(
            partition=0,
            current_leader_epoch=self.leadership.epoch,
            fetch_offset=end.offset,
            last_fetched_epoch=end.epoch,
            log_start_offset=UNKNOWN_OFFSET,
            partition_max_bytes=self._limits.fetch_bytes,
            replica_directory_id=self._directory_id,
            high_watermark=high_watermark,
        )
        return FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=fetch.ReplicaState(replica_id=self._node_id, replica_epoch=NO_BROKER_EPOCH),
            max_wait_ms=self._limits.max_wait_ms,
            min_bytes=0,
            max_bytes=self._limits.fetch_bytes,
            topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _snapshot_request(self, fetching: Fetching) -> FetchSnapshotRequest:
        snapshot_id = fetching.snapshot_id
        partition = fetch_snapshot.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self.leadership.epoch,
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
            position=fetching.position,
            replica_directory_id=self._directory_id,
        )
        return FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._node_id,
            max_bytes=self._limits.snapshot_bytes,
            topics=[fetch_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
        )

    def fetched(self, response: FetchResponse, high_watermark: int | None) -> Step:
        """Returns the step after the answer to a Fetch."""
        partitions = [data for topic in response.responses for data in topic.partitions if topic.topic_id == TOPIC_ID]
        if response.error_code or len(partitions) != 1:
            return _refused(response.error_code, "a Fetch")
        (partition,) = partitions
        self.leadership.locate(response.node_endpoints)
        step = self._led(partition.error_code, partition.current_leader, "a Fetch")
        if step is not None:
            return step
        diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
        if diverging.epoch >= 0:
            return self._diverged(diverging, high_watermark)
        if snapshot_id.epoch >= 0 or snapshot_id.end_offset >= 0:
            return self._begin(SnapshotId(snapshot_id.end_offset, snapshot_id.epoch), high_watermark)
        return Append(memoryview(partition.records or b""), partition.high_watermark)

    def snapshot_fetched(self, response: FetchSnapshotResponse) -> Step:
        """Returns the step after the answer to a FetchSnapshot."""
        partitions = [data for topic in response.topics for data in topic.partitions if topic.name == METADATA_TOPIC]
        if response.error_code or len(partitions) != 1:
            return _refused(response.error_code, "a FetchSnapshot")
        (partition,) = partitions
        fetching = self._fetching
        if fetching is None:
            return Refused("an answer to a FetchSnapshot that was not sent")
        self.leadership.locate(response.node_endpoints)
        code = error_code(partition.error_code)
        if code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            return self._drop(fetching)
        step = self._led(partition.error_code, partition.current_leader, "a FetchSnapshot")
        if step is not None:
            return step
        return self._piece(fetching, partition)

    def _piece(self, fetching: Fetching, partition: fetch_snapshot.ResponsePartitionSnapshot) -> Step:
        content = memoryview(partition.unaligned_records)
        position, end = fetching.position, fetching.position + len(content)
        answered = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        if answered != fetching.snapshot_id or partition.position != position:
            reason = f"{answered.file_name} from byte {partition.position}"
            return self._abandon(
                f"{reason}, but the request was for {fetching.snapshot_id.file_name} from byte {position}"
            )
        if end > partition.size or (not content and end < partition.size):
            return self._abandon(f"{len(content)} bytes at {position} of a snapshot of {partition.size} bytes")
        is_last = end == partition.size
        self._fetching = None if is_last else fetching._replace(position=end)
        return WritePiece(fetching.snapshot_id, position, content, is_last)

    def _drop(self, fetching: Fetching) -> Step:
        self._fetching = None
        return DropSnapshot(fetching.snapshot_id)

    def _abandon(self, reason: str) -> Step:
        self._fetching = None
        return Refused(f"the answer to a FetchSnapshot is for {reason}")

    def _led(
        self, code: int, current: fetch.LeaderIdAndEpoch | fetch_snapshot.LeaderIdAndEpoch, what: str
    ) -> Step | None:
        """Returns the step after an answer that isn't from this epoch's leader; None if it is."""
        leadership, error = self.leadership, error_code(code)
        before = leadership.state
        problem = leadership.names_leader(current.leader_id, current.leader_epoch)
        if problem is not None:
            return Refused(f"the answer to {what} {problem}")
        if error in ELSEWHERE:
            if leadership.state != before and leadership.leader is not None:
                return AGAIN
            if current.leader_id < 0:
                leadership.suspect()
            return Refused("the controller that was asked does not lead, and names no other leader")
        if error:
            leadership.suspect()
            return _refused(code, what)
        if leadership.epoch > before.leader_epoch:
            return AGAIN
        if current.leader_epoch < leadership.epoch or leadership.leader_id < 0:
            return Refused(f"the answer to {what} is not from the leader of epoch {leadership.epoch}")
        return None

    def _diverged(self, diverging: fetch.EpochEndOffset, high_watermark: int | None) -> Step:
        if diverging.end_offset < (high_watermark or 0):
            return Refused(
                f"the leader's log ends at offset {diverging.end_offset} in epoch {diverging.epoch}, and everything "
                f"before {high_watermark} is committed here"
            )
        return Truncate(diverging.epoch, diverging.end_offset)

    def _begin(self, snapshot_id: SnapshotId, high_watermark: int | None) -> Step:
        if min(snapshot_id) < 0 or snapshot_id.offset <= (high_watermark or 0):
            return Refused(
                f"the leader offers a snapshot of epoch {snapshot_id.epoch} up to offset {snapshot_id.offset}, and "
                f"{high_watermark or 0} is committed here"
            )
        self._fetching = Fetching(snapshot_id, 0, self.leadership.epoch)
        return BeginSnapshot(snapshot_id)


def _refused(code: int, what: str) -> Step:
    error = error_code(code)
    if not error:
        return Refused(f"the answer to {what} is not of {METADATA_TOPIC}")
    return Refused(f"the answer to {what} is {error.name}: {error.message}")
