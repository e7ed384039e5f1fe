"""Inputs and outputs of the raft core: a `Ready` has everything that its caller must do.

The caller carries a `Ready` out in this order, before it gives the core the next input:
    1. `writes`, in order. They need not be durable, except that a snapshot is flushed before it is adopted.
    2. `quorum_state`, durably.
    3. `sends` and `replies`. The caller fills in the records or bytes that a reply asks for.
    4. `flush`: starts to flush the log, if no flush is in progress, and later gives the token to `Raft.flushed`.

Source: etcd's raft.Ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from coordinator.cluster.brokers.info import Endpoint, FeatureRange
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Location
from coordinator.quorum.observer import BeginSnapshot, DropSnapshot, WritePiece
from coordinator.quorum.pieces import PieceWish
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.voter_set import ControlRecord
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.types import Buffer

Request: TypeAlias = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
)
"""Requests that the core answers, and sends to other nodes."""

Response: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UpdateRaftVoterResponse
)


class LocalReplica(NamedTuple):
    """This node as a replica of the metadata log."""

    cluster_id: str
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    """The addresses of its controller; none for a broker."""
    listener: str
    """The listener name on which controllers are reached (the first of controller.listener.names)."""
    can_vote: bool
    """True for a controller; a broker only observes."""
    kraft_versions: FeatureRange = FeatureRange(0, 1)


class RaftConfig(NamedTuple):
    """The options of the quorum, with Kafka's defaults."""

    election_timeout_ms: int = 1_000
    """controller.quorum.election.timeout.ms"""
    election_backoff_max_ms: int = 1_000
    """controller.quorum.election.backoff.max.ms"""
    fetch_timeout_ms: int = 2_000
    """controller.quorum.fetch.timeout.ms"""
    request_timeout_ms: int = 2_000
    """controller.quorum.request.timeout.ms"""
    retry_backoff_ms: int = 20
    """controller.quorum.retry.backoff.ms"""
    fetch_max_wait_ms: int = 500
    """KafkaRaftClient.MAX_FETCH_WAIT_MS"""
    fetch_bytes: int = 1 << 20
    """controller.quorum.fetch.max.bytes"""
    snapshot_bytes: int = 1 << 20
    """controller.quorum.fetch.snapshot.max.bytes"""
    auto_join: bool = False
    """controller.quorum.auto.join.enable"""


class RecoveredLog(NamedTuple):
    """The log as it was found at start. Everything in it is flushed."""

    start_offset: int = 0
    end_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    """Each epoch that the log has records of, with its first offset."""
    snapshots: tuple[SnapshotId, ...] = ()
    """The snapshots beside the log, oldest first."""
    control: tuple[ControlRecord, ...] = ()
    """The control records of the last snapshot, then those of the log after it."""


class Send(NamedTuple):
    """A request to another node. The answer, or the error, goes to `Raft.response` with the correlation id."""

    correlation_id: int
    node_id: int
    """The node; negative if only an address from the configuration is known."""
    destination: Location
    request: Request | ApiVersionsRequest
    timeout_ms: int


class ReadRecords(NamedTuple):
    """The records that a FetchResponse must have: whole batches from an offset on, at most `max_bytes`, but at least
    one batch."""

    offset: int
    max_bytes: int


class RaftReply(NamedTuple):
    """The answer to a request, which the caller knows by its ticket."""

    ticket: int
    response: Response
    read: ReadRecords | PieceWish | None = None
    """Records to set in the FetchResponse, or a piece of a snapshot to set in the FetchSnapshotResponse."""


class AppendBatches(NamedTuple):
    """Appends whole batches, which have their offsets and epochs."""

    data: Buffer
    base_offset: int
    next_offset: int
    epoch: int
    """The epoch of the leader that has sent or made the batches."""
    control: tuple[ControlRecord, ...] = ()
    """The control records in the batches."""


class TruncateTo(NamedTuple):
    """Truncates the log, so that it ends at this offset."""

    offset: int


class AdoptSnapshot(NamedTuple):
    """Validates the fetched snapshot, of which all pieces are written, and replaces the log by it. The caller's next
    input is `Raft.adopted`, or `Raft.rejected` if the snapshot is damaged."""

    snapshot_id: SnapshotId


Write: TypeAlias = AppendBatches | TruncateTo | BeginSnapshot | WritePiece | DropSnapshot | AdoptSnapshot


class Flush(NamedTuple):
    """The token of a flush: it covers all records before the offset."""

    end_offset: int
    generation: int
    """Changes with each truncation, so that a flush from before it counts no records from after it."""


class LeaderAndRole(NamedTuple):
    """The leader that this node knows, and this node's own role."""

    epoch: int
    leader_id: int
    role: Role
    epoch_start_offset: int = -1
    """The first offset of this node's own epoch as a leader; otherwise -1."""


@dataclass(slots=True)
class Ready:
    """Everything that the caller must do after an input, in this order."""

    writes: list[Write] = field(default_factory=list)
    quorum_state: QuorumState | None = None
    """The state to store durably before anything is sent; None if it hasn't changed."""
    sends: list[Send] = field(default_factory=list)
    replies: list[RaftReply] = field(default_factory=list)
    flush: Flush | None = None
    """The token for `Raft.flushed`; None if nothing new needs a flush."""
    high_watermark: int | None = None
    """The new high watermark: all records before it are committed; None if it hasn't changed."""
    leader: LeaderAndRole | None = None
    """The new leader, epoch or role; None if they haven't changed."""
    problems: list[str] = field(default_factory=list)
    """Log lines for the operator: wrong answers and rejected records."""
