"""The asyncio side of the quorum's leader: delays fetches until there are new records, and reads pieces of snapshots.

Source: the fetch purgatory of Kafka's KafkaRaftClient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.clock import Clock, done_by
from broker.metadata.led_log import LedLog
from broker.metadata.opening import ClusterPart, MetadataSettings
from broker.metadata.snapshots import Snapshots
from coordinator.cluster.formatting import Identity
from coordinator.quorum.leader import QuorumLeader, Voter
from coordinator.quorum.pieces import PieceWish
from coordinator.quorum.ready import Request
from coordinator.quorum.replicas import ReplicaKey, ReplicaProgress
from coordinator.quorum.snapshot_pieces import piece_response, piece_wish
from coordinator.quorum.voters import answer_update, error_of_added, error_of_removed
from coordinator.quorum.voting import answer_begin_quorum_epoch, answer_end_quorum_epoch, answer_vote
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from protocol.messages.vote import VoteRequest

if TYPE_CHECKING:
    from broker.metadata.observing import Threads


class DescribedQuorum(NamedTuple):
    """The quorum as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: Sequence[ReplicaProgress]
    observers: Sequence[ReplicaProgress]


class QuorumNode(Protocol):
    """The metadata quorum, of which this node is a voter."""

    @property
    def leader_id(self) -> int:
        """The node that leads; -1 if it is unknown."""
        ...

    async def answer(self, request: Request, version: int, listener: str) -> object:
        """Returns the response to another node's request, which came on this listener."""
        ...

    def describe(self) -> DescribedQuorum:
        """Returns the progress of all replicas. Raises NOT_LEADER_OR_FOLLOWER if another node leads."""
        ...


class LeadingQuorum:
    """The quorum of a controller that is its only voter."""

    def __init__(self, voter: Voter, log: LedLog, snapshots: Snapshots, clock: Clock, threads: Threads) -> None:
        self.leader = QuorumLeader(voter, log)
        self._log = log
        self._snapshots = snapshots
        self._clock = clock
        self._threads = threads

    @property
    def leader_id(self) -> int:
        return self.leader.voter.node_id

    async def answer(self, request: Request, version: int, listener: str) -> object:
        """Answers a request of another node, which came on this listener. Raises LogDirFailure."""
        leader = self.leader
        match request:
            case FetchRequest():
                return await self.fetch(request, version, listener)
            case FetchSnapshotRequest():
                return await self.fetch_snapshot(request, version, listener)
            case VoteRequest():
                return answer_vote(leader, request, version, listener)
            case BeginQuorumEpochRequest():
                return answer_begin_quorum_epoch(leader, request, version, listener)
            case EndQuorumEpochRequest():
                return answer_end_quorum_epoch(leader, request, version, listener)
            case UpdateRaftVoterRequest():
                return answer_update(leader, request, listener)
            case AddRaftVoterRequest():
                error = error_of_added(leader.voter, request)
                return AddRaftVoterResponse(error_code=error.code, error_message=error.message)
            case RemoveRaftVoterRequest():
                error = error_of_removed(leader.voter, request)
                return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message)

    def describe(self) -> DescribedQuorum:
        """Returns the progress of this voter and of the observers."""
        now_ms = self._clock.now_ms()
        own = ReplicaProgress(self.leader.voter.key, self._log.end_offset, fetched_ms=now_ms, caught_up_ms=now_ms)
        observers = self.leader.observers.active(now_ms)
        return DescribedQuorum(self.leader_id, self._log.epoch, self._log.high_watermark, [own], observers)

    async def fetch(self, request: FetchRequest, version: int, listener: str) -> FetchResponse:
        """Answers a replica's Fetch: at once if there are new records, otherwise when records are committed or its
        maximum wait time is over."""
        deadline_ms = self._clock.monotonic_ms() + request.max_wait_ms
        while True:
            response, may_wait = self._fetched(request, version, listener)
            if not may_wait or not await done_by(self._clock, deadline_ms, self._log.advanced()):
                return response

    def _fetched(self, request: FetchRequest, version: int, listener: str) -> tuple[FetchResponse, bool]:
        return self.leader.fetch(request, version, listener, self._snapshots.ids, self._clock.now_ms())

    async def fetch_snapshot(self, request: FetchSnapshotRequest, version: int, listener: str) -> FetchSnapshotResponse:
        """Answers FetchSnapshot. Raises LogDirFailure."""
        wish = piece_wish(self.leader, request, version, listener, self._snapshots.ids)
        if not isinstance(wish, PieceWish):
            return wish
        piece = await self._threads.call(lambda: self._log.read_snapshot_piece(*wish))
        return piece_response(self.leader, wish, piece, version, listener)


def lead_quorum(
    settings: MetadataSettings, identity: Identity, cluster: ClusterPart, log: LedLog, clock: Clock, threads: Threads
) -> LeadingQuorum:
    """Returns the quorum of a controller in this process."""
    options = settings.options
    key = ReplicaKey(options.node_id, identity.directory_ids[settings.metadata_dir])
    voter = Voter(identity.cluster_id, key, options.controller_listeners)
    return LeadingQuorum(voter, log, cluster.snapshots, clock, threads)
