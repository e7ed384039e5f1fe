"""A replica of the metadata log in a quorum of several voters: messages and time in, one `Ready` out. Sans-IO.

    raft = Raft(replica, config, log, state, …)
    raft.request(…) | raft.response(…) | raft.tick(now_ms) | raft.propose(…) | raft.flushed(…) | …
    ready = raft.ready()      → writes, state to store, messages to send, replies, high watermark, leader

Call `ready` after every input, and carry it out before the next input. Call `tick` at `deadline_ms`.

Source: Kafka's KafkaRaftClient (KIP-595, 630, 853, 996, 1166, 1186); the shape is that of etcd's raft.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Location
from coordinator.quorum.ready import Flush, RaftConfig, Ready, RecoveredLog, Replica, Request, Response
from coordinator.quorum.replicas import ReplicaProgress
from coordinator.quorum.roles import Role
from coordinator.quorum.voter_set import VoterSet
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.records.control import QuorumRecord


class Raft:
    """A replica of the metadata log."""

    role: Role
    epoch: int
    leader_id: int
    """The leader of the epoch; -1 if it is unknown."""
    high_watermark: int
    """The offset before which all records are committed, as far as this node knows."""

    def __init__(
        self,
        replica: Replica,
        config: RaftConfig,
        log: RecoveredLog,
        state: QuorumState,
        static_voters: VoterSet,
        bootstrap: Sequence[Location],
        random: Callable[[int], int],
        now_ms: int,
    ) -> None:
        """`static_voters` are controller.quorum.voters, `bootstrap` controller.quorum.bootstrap.servers, and
        `random(n)` returns a random number from 0 to n - 1. All times are of a monotonic clock."""

    @property
    def deadline_ms(self) -> int:
        """The time of the next `tick`."""

    @property
    def voters(self) -> VoterSet:
        """The voters of the log's end, committed or not."""

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the log's end."""

    def ready(self) -> Ready:
        """Returns what the caller must do, and begins a new one."""

    def request(self, request: Request, version: int, listener: str, ticket: int, now_ms: int) -> None:
        """Handles a request from another node. Exactly one Reply with this ticket follows, now or later. `listener`
        is the listener name on which the request came."""

    def response(self, correlation_id: int, response: Response | ApiVersionsResponse | ErrorCode, now_ms: int) -> None:
        """Handles the answer to a `Send`, or the error if there is none: REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE if
        the node can't be reached, UNSUPPORTED_VERSION if it doesn't know the API or a field that must be sent."""

    def tick(self, now_ms: int) -> None:
        """Handles what is due by now."""

    def propose(self, batch: bytearray, now_ms: int) -> int:
        """Appends a batch as the leader, and returns the offset after it. The batch is stamped with its offset and
        epoch. It is committed once the high watermark has reached that offset in this epoch. Raises
        KafkaError(NOT_LEADER_OR_FOLLOWER) if this node doesn't lead."""

    def flushed(self, flush: Flush, now_ms: int) -> None:
        """Handles the end of a flush."""

    def adopted(self, snapshot_id: SnapshotId, records: Sequence[QuorumRecord], now_ms: int) -> None:
        """Handles the end of AdoptSnapshot; `records` are the snapshot's control records."""

    def rejected(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """Handles a fetched snapshot that is damaged. The caller has removed it."""

    def snapshots_changed(self, start_offset: int, snapshots: Sequence[SnapshotId]) -> None:
        """Handles a new snapshot of this node, removed snapshots, and a moved log start."""

    def resign(self, epoch: int, now_ms: int) -> None:
        """Resigns as the leader of this epoch; does nothing if this node doesn't lead in it."""

    def shut_down(self, now_ms: int) -> None:
        """Begins a shutdown: a leader resigns, and this node takes part in no further election."""

    @property
    def may_stop(self) -> bool:
        """True if the shutdown may end, because another node leads or no other voter is left."""

    def upgrade(self, kraft_version: int, now_ms: int) -> ErrorCode:
        """Writes a higher kraft.version and the voters to the log, as the leader of static voters (KIP-853). Returns
        INVALID_UPDATE_VERSION if a voter doesn't support it or hasn't sent UpdateRaftVoter yet."""

    def voters_before(self, offset: int) -> tuple[VoterSet, int]:
        """Returns the voter set and kraft.version of the records before this offset, for a snapshot."""

    def describe(self, now_ms: int) -> tuple[list[ReplicaProgress], list[ReplicaProgress]]:
        """Returns the progress of voters and of observers, as the leader."""
