"""A replica of the metadata log in a quorum of several voters: messages and time in, one `Ready` out. Sans-IO.

    raft = Raft(replica, config, log, state, …)
    raft.request(…) | raft.response(…) | raft.tick(now_ms) | raft.propose(…) | raft.flushed(…) | …
    ready = raft.ready()      → writes, state to store, messages to send, replies, high watermark, leader

Call `ready` after every input, and carry it out before the next input. Call `tick` at `deadline_ms`.

Source: Kafka's KafkaRaftClient (KIP-595, 630, 853, 996, 1166, 1186); the shape is that of etcd's raft.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum import electing, following, leading, membership
from coordinator.quorum.connections import NEVER
from coordinator.quorum.core import Core
from coordinator.quorum.leadership import Location
from coordinator.quorum.leading import LeaderState
from coordinator.quorum.membership import VoterRejection
from coordinator.quorum.ready import Flush, LocalReplica, RaftConfig, Ready, RecoveredLog, Request, Response
from coordinator.quorum.replicas import ReplicaProgress
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import RULES, Rules
from coordinator.quorum.states import CandidateState, FollowerState, ProspectiveState, ResignedState, UnattachedState
from coordinator.quorum.voter_set import VoterSet
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from protocol.messages.vote import VoteRequest
from protocol.records.control import QuorumRecord

Handler = Callable[..., None]

FULL_MS: Final = 5_000
"""Time after which a node whose disk was full writes again, if it doesn't lead."""

ANSWERED: Final[dict[type, Handler]] = {
    VoteRequest: electing.vote_answered,
    BeginQuorumEpochRequest: electing.begin_answered,
    EndQuorumEpochRequest: electing.end_answered,
    FetchRequest: following.fetch_answered,
    FetchSnapshotRequest: following.snapshot_answered,
    ApiVersionsRequest: membership.api_versions_answered,
    UpdateRaftVoterRequest: membership.update_answered,
    AddRaftVoterRequest: membership.change_answered,
    RemoveRaftVoterRequest: membership.change_answered,
}
"""The handler of the answer to a request that this node has sent."""


class Raft:
    """A replica of the metadata log."""

    def __init__(
        self,
        replica: LocalReplica,
        config: RaftConfig,
        log: RecoveredLog,
        state: QuorumState,
        static_voters: VoterSet,
        bootstrap: Sequence[Location],
        random: Callable[[int], int],
        timestamp: Callable[[], int],
        now_ms: int,
        rules: Rules = RULES,
    ) -> None:
        """`static_voters` are controller.quorum.voters, `bootstrap` controller.quorum.bootstrap.servers, `random(n)`
        returns a random number from 0 to n - 1, and `timestamp` the time of day, for the log's control records. All
        other times are of a monotonic clock."""
        self._core = Core(
            replica, config, log, state, static_voters, bootstrap, random, timestamp, now_ms, rules, LeaderState
        )
        self._offered: Flush | None = None
        core = self._core
        if core.may_elect and core.voters.is_only_voter(replica.key) and core.role not in (Role.CANDIDATE, Role.LEADER):
            core.become_prospective()
        self._poll()

    # What it knows

    @property
    def role(self) -> Role:
        """The role of this node."""
        return self._core.role

    @property
    def epoch(self) -> int:
        """The epoch of the quorum."""
        return self._core.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch; -1 if it is unknown."""
        return self._core.leader_id

    @property
    def leader_address(self) -> Location | None:
        """The address at which this node reaches the leader, also if the log doesn't have it yet; None if it is
        unknown."""
        return self._core.leader_address

    @property
    def high_watermark(self) -> int:
        """The offset before which all records are committed, as far as this node knows."""
        return self._core.high_watermark

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self._core.log.end_offset

    @property
    def deadline_ms(self) -> int:
        """The time of the next `tick`."""
        return self._core.wake_ms

    @property
    def voters(self) -> VoterSet:
        """The voters of the log's end, committed or not."""
        return self._core.history.last

    @property
    def is_changing_voters(self) -> bool:
        """True if the voters of the log's end are not committed yet."""
        return self._core.history.last_offset >= self._core.high_watermark

    @property
    def other_voters(self) -> list[Location]:
        """The addresses of the voters except this node."""
        replica = self._core.replica
        addresses = (voter.address(replica.listener) for voter in self._core.other_voters)
        return [address for address in addresses if address is not None]

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the log's end."""
        return self._core.history.kraft_version

    @property
    def is_voter(self) -> bool:
        """True if this node is a voter."""
        return self._core.is_voter

    @property
    def may_stop(self) -> bool:
        """True if the shutdown may end, because another node leads or no other voter is left."""
        core = self._core
        other_leads = core.has_leader and core.leader_id != core.replica.key.node_id
        return core.is_shutting_down and (not core.is_voter or not core.other_voters or other_leads)

    def voters_before(self, offset: int) -> tuple[VoterSet, int]:
        """Returns the voter set and kraft.version of the records before this offset, for a snapshot."""
        return self._core.history.before(offset)

    def describe(self, now_ms: int) -> tuple[list[ReplicaProgress], list[ReplicaProgress]]:
        """Returns the progress of voters and of observers, as the leader; nothing if this node doesn't lead."""
        self._advance(now_ms)
        state = self._core.state
        return state.describe() if isinstance(state, LeaderState) else ([], [])

    def ready(self) -> Ready:
        """Returns what the caller must do, and begins a new one."""
        core = self._core
        ready, core.out = core.out, Ready()
        token = core.log.flush_token
        if not core.log.is_flushed and token != self._offered:
            ready.flush = self._offered = token
        return ready

    # Inputs

    def request(self, request: Request, version: int, listener: str, ticket: int, now_ms: int) -> None:
        """Handles a request from another node. Exactly one RaftReply with this ticket follows, now or later. `listener`
        is the listener name on which the request came."""
        self._advance(now_ms)
        core = self._core
        if isinstance(request, FetchRequest):
            leading.answer_fetch(core, request, version, listener, ticket)
        elif isinstance(request, FetchSnapshotRequest):
            leading.answer_fetch_snapshot(core, request, version, listener, ticket)
        elif isinstance(request, VoteRequest):
            electing.answer_vote(core, request, version, listener, ticket)
        elif isinstance(request, BeginQuorumEpochRequest):
            electing.answer_begin(core, request, version, listener, ticket)
        elif isinstance(request, EndQuorumEpochRequest):
            electing.answer_end(core, request, version, listener, ticket)
        elif isinstance(request, AddRaftVoterRequest):
            membership.answer_add(core, request, ticket)
        elif isinstance(request, RemoveRaftVoterRequest):
            membership.answer_remove(core, request, ticket)
        else:
            membership.answer_update(core, request, listener, ticket)
        self._poll()

    def forget(self, ticket: int) -> None:
        """Drops a Fetch that waits, because its connection is closed: no reply follows."""
        state = self._core.state
        if isinstance(state, LeaderState):
            state.forget(ticket)

    def response(self, correlation_id: int, response: Response | ApiVersionsResponse | ErrorCode, now_ms: int) -> None:
        """Handles the answer to a `Send`, or the error if there is none: REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE if
        the node can't be reached, UNSUPPORTED_VERSION if it doesn't know the API or a field that must be sent."""
        self._advance(now_ms)
        sent = self._core.connections.answered(correlation_id)
        if sent is not None:
            ANSWERED[sent.kind](self._core, sent, response)
            self._poll()

    def tick(self, now_ms: int) -> None:
        """Handles what is due by now."""
        self._advance(now_ms)
        self._poll()

    def propose(self, batch: bytearray, now_ms: int) -> int:
        """Appends a batch as the leader, and returns the offset after it. The batch is stamped with its offset and
        epoch. It is committed once the high watermark has reached that offset in this epoch. Raises
        KafkaError(NOT_LEADER_OR_FOLLOWER) if this node doesn't lead."""
        self._advance(now_ms)
        offset = leading.propose(self._core, batch)
        self._poll()
        return offset

    def flushed(self, flush: Flush, now_ms: int) -> None:
        """Handles the end of a flush."""
        self._advance(now_ms)
        core = self._core
        core.log.flushed(flush)
        if isinstance(core.state, LeaderState):
            core.state.commit()
        self._poll()

    def not_written(self, end_offset: int, now_ms: int) -> None:
        """Handles a write that has failed because the disk is full, and has left nothing behind: the log still ends at
        this offset, or a snapshot is incomplete. A leader resigns, so that a voter whose disk has room may lead. The
        only voter leads on: its caller rejects the change. A follower fetches the records again later. Until then this
        node begins no election."""
        self._advance(now_ms)
        core = self._core
        if end_offset < core.log.end_offset:
            core.log.truncate(end_offset)
            core.history.truncate(end_offset)
            core.high_watermark = min(core.high_watermark, end_offset)  # the caller has not used what is beyond
        core.full_until_ms = core.now_ms + FULL_MS
        if isinstance(core.state, LeaderState):
            core.state.not_written(end_offset)
        elif isinstance(core.state, FollowerState):
            following.drop_snapshot(core)
            core.state.fetch_ms = core.full_until_ms + core.config.fetch_timeout_ms
        self._poll()

    def adopted(self, snapshot_id: SnapshotId, records: Sequence[QuorumRecord], now_ms: int) -> None:
        """Handles the end of AdoptSnapshot; `records` are the snapshot's control records."""
        self._advance(now_ms)
        following.adopted(self._core, snapshot_id, records)
        self._poll()

    def rejected(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """Handles a fetched snapshot that is damaged. The caller has removed it; it is fetched again."""
        self._advance(now_ms)
        core = self._core
        core.out.problems.append(f"the fetched snapshot {snapshot_id.file_name} is damaged")
        core.connections.pause(core.leader_id, core.now_ms + core.config.retry_backoff_ms)
        self._poll()

    def snapshots_changed(self, start_offset: int, snapshots: Sequence[SnapshotId]) -> None:
        """Handles a new snapshot of this node, removed snapshots, and a moved log start."""
        self._core.log.cut(start_offset, snapshots)
        self._core.history.forget(self._core.log.start_offset)

    def resign(self, epoch: int, now_ms: int) -> None:
        """Resigns as the leader of this epoch; does nothing if this node doesn't lead in it."""
        self._advance(now_ms)
        state = self._core.state
        if isinstance(state, LeaderState) and epoch == self._core.epoch:
            state.is_resigning = True
        self._poll()

    def shut_down(self, now_ms: int) -> None:
        """Begins a shutdown: a leader resigns, and this node begins no further election."""
        self._advance(now_ms)
        self._core.is_shutting_down = True
        self._poll()

    def upgrade_problem(self, kraft_version: int) -> VoterRejection | None:
        """Returns the error that `upgrade` would return now."""
        return membership.upgrade_problem(self._core, kraft_version)

    def upgrade(self, kraft_version: int, now_ms: int) -> VoterRejection | None:
        """Writes a higher kraft.version and the voters to the log, as the leader of static voters (KIP-853). Returns
        INVALID_UPDATE_VERSION if a voter doesn't support it or hasn't sent UpdateRaftVoter yet."""
        self._advance(now_ms)
        problem = membership.upgrade(self._core, kraft_version)
        self._poll()
        return problem

    # Time

    def _advance(self, now_ms: int) -> None:
        self._core.now_ms = max(self._core.now_ms, now_ms)

    def _poll(self) -> None:
        """Does what is due, until the role no longer changes."""
        core = self._core
        for node_id in core.connections.expire(core.now_ms):
            core.connections.pause(node_id, core.now_ms + core.config.retry_backoff_ms)
        core.wake_ms = NEVER
        while self._poll_role():
            core.wake_ms = NEVER
        core.wake(core.connections.first_deadline_ms)

    def _poll_role(self) -> bool:
        core, state = self._core, self._core.state
        if isinstance(state, LeaderState):
            return state.poll()
        if isinstance(state, FollowerState):
            return following.poll_follower(core, state)
        if isinstance(state, CandidateState):
            return electing.poll_candidate(core, state)
        if isinstance(state, ResignedState):
            return electing.poll_resigned(core, state)
        if isinstance(state, UnattachedState):
            has_changed = electing.poll_unattached(core, state)
        else:
            assert isinstance(state, ProspectiveState)
            has_changed = electing.poll_prospective(core, state)
        if not has_changed:
            following.ask_any(core)  # KAFKA-17030: a voter without a leader goes on to fetch
        return has_changed
