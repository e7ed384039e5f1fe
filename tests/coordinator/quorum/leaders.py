"""A quorum leader for tests, with a log that a test sets."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leader import Fetched, QuorumLeader, Voter
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.replicas import ReplicaKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData, ReplicaState

CLUSTER = "the-cluster"
LISTENER = "CONTROLLER"
LEADER, OBSERVER = 100, 1
DIRECTORY = b"directory-of-100"
OTHER_DIRECTORY = b"directory-of-one"
ENDPOINT = Endpoint(LISTENER, "controller.example", 9093)
VOTER = Voter(CLUSTER, ReplicaKey(LEADER, DIRECTORY), (ENDPOINT,))
NEWEST = 18
NOW_MS = 1_000_000


class SaidLog:
    """A log with one byte for each record, in epochs that begin at the given offsets."""

    def __init__(
        self,
        epochs: Sequence[tuple[int, int]] = ((1, 0), (3, 10)),
        *,
        start: int = 0,
        committed: int = 20,
        end: int = 20,
    ) -> None:
        """`epochs` are pairs of epoch and first offset."""
        self._epochs = epochs
        self.epoch = epochs[-1][0]
        self.start_offset = start
        self.high_watermark = committed
        self.end_offset = end

    def epoch_end(self, epoch: int) -> LogEnd:
        ends = [*(first for _, first in self._epochs[1:]), self.end_offset]
        earlier = [LogEnd(end, one) for (one, _), end in zip(self._epochs, ends, strict=True) if one <= epoch]
        return earlier[-1] if earlier else LogEnd(self._epochs[0][1], epoch)

    def committed_records(self, offset: int, max_bytes: int) -> memoryview:
        return memoryview(bytes(range(offset, min(self.high_watermark, offset + max(max_bytes, 1)))))


def a_leader(log: SaidLog | None = None) -> QuorumLeader:
    return QuorumLeader(VOTER, log or SaidLog())


def a_fetch(offset: int, epoch: int, **fields: object) -> FetchRequest:
    """Returns a Fetch of the observer; `fields` are of the request, or of its partition."""
    partition: dict[str, object] = {
        "partition": 0,
        "current_leader_epoch": 3,
        "fetch_offset": offset,
        "last_fetched_epoch": epoch,
        "partition_max_bytes": 0,
        "replica_directory_id": OTHER_DIRECTORY,
        "high_watermark": 20,
    }
    request: dict[str, object] = {
        "cluster_id": CLUSTER,
        "replica_state": ReplicaState(replica_id=OBSERVER),
        "max_wait_ms": 500,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
    }
    topic_id = fields.pop("topic_id", TOPIC_ID)
    for name, value in fields.items():
        (partition if name in partition else request)[name] = value
    topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(**partition)])  # type: ignore[arg-type]
    return FetchRequest(**request, topics=[topic])  # type: ignore[arg-type]


def fetched(
    leader: QuorumLeader, request: FetchRequest, *snapshots: SnapshotId, version: int = NEWEST, now_ms: int = NOW_MS
) -> Fetched:
    return leader.fetch(request, version, LISTENER, snapshots, now_ms)


def partition_of(answer: Fetched) -> PartitionData:
    ((partition,),) = (topic.partitions for topic in answer.response.responses)
    return partition
