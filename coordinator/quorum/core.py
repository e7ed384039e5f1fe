"""The state of a replica of the metadata log, and its transitions between roles.

`raft.py` is the way in; `electing.py`, `leading.py`, `following.py` and `membership.py` decide what follows an input.
Everything that leaves is put into a `Ready`.

Source: Kafka's QuorumState, KafkaRaftClient.maybeTransition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.quorum_state import NOBODY, QuorumState
from coordinator.quorum.connections import NEVER, RaftConnections, SentRequest
from coordinator.quorum.leadership import Location
from coordinator.quorum.log_end import LAST_EPOCH
from coordinator.quorum.log_state import LogState
from coordinator.quorum.observer import DropSnapshot
from coordinator.quorum.pieces import PieceWish
from coordinator.quorum.ready import (
    LeaderAndRole,
    LocalReplica,
    RaftConfig,
    RaftReply,
    ReadRecords,
    Ready,
    RecoveredLog,
    Request,
    Response,
    Send,
)
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import Rules
from coordinator.quorum.states import (
    UPDATE_PERIODS,
    CandidateState,
    FollowerState,
    LeadingRole,
    ProspectiveState,
    ResignedState,
    State,
    UnattachedState,
    Votes,
)
from coordinator.quorum.voter_set import VoterHistory, VoterNode, VoterSet
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.types import NO_UUID


class Core:
    """A replica's state."""

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
        rules: Rules,
        lead: Callable[[Core, Sequence[int]], LeadingRole],
    ) -> None:
        self.replica = replica
        self.config = config
        self.rules = rules
        self._lead = lead
        self.random = random
        self.timestamp = timestamp
        self.log = LogState(log)
        self.history = VoterHistory(static_voters)
        self.history.add(log.control)
        self.now_ms = now_ms
        self.wake_ms = NEVER
        self.out = Ready()
        self.is_shutting_down = False
        self.full_until_ms = 0
        """The time until which this node begins no election, because its disk is full."""
        newest = log.snapshots[-1].offset if log.snapshots else 0
        self.high_watermark = min(max(log.start_offset, newest), log.end_offset)
        own = {Location(endpoint.host, endpoint.port) for endpoint in replica.endpoints}
        self.connections = RaftConnections(location for location in bootstrap if location not in own)
        self.epoch = state.leader_epoch
        self.leader_id = state.leader_id
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        self.voted: ReplicaKey | None = (
            None if state.voted_id == NOBODY else ReplicaKey(state.voted_id, state.voted_directory_id)
        )
        self._stored = state
        self.state: State = UnattachedState(NEVER)
        self._resume()
        self._store()

    # The role at start

    def _resume(self) -> None:
        if self.epoch < self.log.end.epoch:
            self.out.problems.append(
                f"quorum-state has epoch {self.epoch}, but the log ends with epoch {self.log.end.epoch}: it was lost"
            )
            self.epoch, self.leader_id, self.voted = self.log.end.epoch, NOBODY, None
        key = self.replica.key
        led = self.leader_id == key.node_id
        is_candidate = self.leader_id == NOBODY and self.voted is not None and self.rules.is_voted(self.voted, key)
        role = self.rules.resumes_as(led, is_candidate and self.is_voter)
        if role is Role.RESIGNED:
            self.state = self._resigned(())
        elif role is Role.LEADER:
            self.leader_endpoints = self.replica.endpoints
            self.state = self._lead(self, [])
        elif role is Role.CANDIDATE:
            self.state = CandidateState(self._votes(), self._election_ms(), 1)
        elif self.leader_id != NOBODY and (endpoints := self.endpoints_of(self.leader_id)):
            self.leader_endpoints = endpoints
            self.state = self._follower()
        else:
            self.state = UnattachedState(self._election_ms())

    # What it knows

    @property
    def role(self) -> Role:
        """The role of this node."""
        return self.state.role

    @property
    def voters(self) -> VoterSet:
        """The voters that decide."""
        last = self.history.last
        if self.history.last_offset < self.high_watermark:
            return last
        return self.rules.counted_voters(last, self.history.before(self.high_watermark)[0])

    @property
    def is_voter(self) -> bool:
        """True if this node is a voter."""
        return self.replica.can_vote and self.voters.is_voter(self.replica.key)

    @property
    def may_elect(self) -> bool:
        """True if this node may begin an election."""
        history, key = self.history, self.replica.key
        if self.is_shutting_down or not self.replica.can_vote or self.epoch >= LAST_EPOCH:
            return False
        if self.now_ms < self.full_until_ms:
            self.wake(self.full_until_ms)
            return False
        if self.voters.is_voter(key):
            return True
        is_uncommitted = history.last_offset >= self.high_watermark
        was_voter = is_uncommitted and history.before(history.last_offset)[0].is_voter(key)
        return was_voter and self.rules.may_elect_when_removed()

    @property
    def other_voters(self) -> list[VoterNode]:
        """The voters except this node."""
        return [voter for voter in self.voters if voter.key.node_id != self.replica.key.node_id]

    @property
    def has_leader(self) -> bool:
        """True if the epoch's leader is known."""
        return self.leader_id != NOBODY

    @property
    def leader_address(self) -> Location | None:
        """The address at which this node reaches the leader."""
        return VoterNode(ReplicaKey(self.leader_id, NO_UUID), self.leader_endpoints).address(self.replica.listener)

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        """Returns the endpoints of a voter; none for an unknown node."""
        voter = self.voters.get(node_id)
        return () if voter is None else voter.endpoints

    # Transitions

    def become_unattached(self, epoch: int) -> None:
        """Begins or continues an epoch without a known leader. A later epoch does not delay this node's election,
        because a node that can't win would otherwise delay those that can."""
        state, election_ms = self.state, self._election_ms()
        if epoch > self.epoch and isinstance(state, UnattachedState | ProspectiveState | CandidateState):
            election_ms = min(state.election_ms, election_ms)
        self._become(UnattachedState(election_ms), epoch, NOBODY, ())

    def vote_for(self, candidate: ReplicaKey) -> None:
        """Votes for a candidate, and gives it time to win."""
        self.voted = candidate
        if isinstance(self.state, UnattachedState | ProspectiveState):
            self.state.election_ms = self._election_ms()
        self._store()

    def become_prospective(self, retries: int = 0) -> None:
        """Begins to request pre-votes in the same epoch."""
        votes = self._votes()
        self._become(
            ProspectiveState(votes, self._election_ms(), retries), self.epoch, self.leader_id, self.leader_endpoints
        )

    def become_candidate(self) -> None:
        """Begins to request votes in the next epoch, and votes for itself."""
        retries = self.state.retries + 1 if isinstance(self.state, ProspectiveState) else 1
        candidate = CandidateState(self._votes(), self._election_ms(), retries)
        self._become(candidate, self.epoch + 1, NOBODY, (), voted=self.replica.key)

    def become_leader(self, granting: Sequence[int]) -> None:
        """Begins to lead the epoch for which this node was elected."""
        leader = self._lead(self, granting)
        self._become(leader, self.epoch, self.replica.key.node_id, self.replica.endpoints)
        leader.begin()

    def become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        """Begins to follow the leader of an epoch."""
        self._become(self._follower(), epoch, leader_id, endpoints)

    def become_resigned(self, preferred: Sequence[ReplicaKey]) -> None:
        """Stops to lead, and stays out of the epoch."""
        self._become(self._resigned(preferred), self.epoch, self.leader_id, self.leader_endpoints)

    def _become(
        self,
        state: State,
        epoch: int,
        leader_id: int,
        endpoints: tuple[Endpoint, ...],
        voted: ReplicaKey | None = None,
    ) -> None:
        before = self.state
        self.rules.check_transition(before.role, self.epoch, state.role, epoch)
        if isinstance(before, FollowerState) and before.fetching is not None:
            self.out.writes.append(DropSnapshot(before.fetching.snapshot_id))
        if epoch > self.epoch:
            self.voted = voted
        self.epoch, self.leader_id, self.leader_endpoints = epoch, leader_id, endpoints
        self.state = state
        self.connections.reset()
        self._store()
        if (leading := _leading(before)) is not None:
            leading.end()

    def _store(self) -> None:
        voted = self.voted or ReplicaKey(NOBODY, NO_UUID)
        stored = QuorumState(self.leader_id, self.epoch, voted.node_id, voted.directory_id)
        if stored != self._stored:
            self.out.quorum_state = self._stored = stored
        leading = _leading(self.state)
        start = -1 if leading is None else leading.epoch_start_offset
        self.out.leader = LeaderAndRole(self.epoch, self.leader_id, self.role, start)

    def _follower(self) -> FollowerState:
        timeout_ms = self.config.fetch_timeout_ms
        return FollowerState(self.now_ms + timeout_ms, self.now_ms + UPDATE_PERIODS * timeout_ms)

    def _resigned(self, preferred: Sequence[ReplicaKey]) -> ResignedState:
        return ResignedState(self._election_ms(), preferred, {voter.key.node_id for voter in self.other_voters})

    def _votes(self) -> Votes:
        votes = Votes(self.voters, self.rules.majority(len(self.voters)))
        votes.record(self.replica.key.node_id, granted=True)
        return votes

    def _election_ms(self) -> int:
        timeout_ms = self.config.election_timeout_ms
        return self.now_ms + timeout_ms + self.random(max(timeout_ms, 1))

    # What others say about the leader

    def learn_leader(self, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]) -> None:
        """Follows what a request or an answer says about the leader of an epoch, if it is possible."""
        if epoch < self.epoch:
            return
        if epoch == self.epoch and self.has_leader:
            if leader_id not in (NOBODY, self.leader_id):
                self.out.problems.append(
                    f"node {leader_id} is named as the leader of epoch {epoch}, but it is node {self.leader_id}"
                )
            elif leader_id != NOBODY and endpoints and self.role is Role.UNATTACHED:
                self.become_follower(epoch, leader_id, endpoints)  # its address was unknown after a restart
            elif leader_id != NOBODY and isinstance(self.state, FollowerState | ProspectiveState):
                by_listener = {endpoint.name.upper(): endpoint for endpoint in (*self.leader_endpoints, *endpoints)}
                self.leader_endpoints = tuple(by_listener.values())  # the leader may have moved
            return
        own = leader_id == self.replica.key.node_id
        endpoints = endpoints or self.endpoints_of(leader_id)
        if leader_id >= 0 and not own and endpoints:
            self.become_follower(epoch, leader_id, endpoints)
        elif epoch > self.epoch:
            self.become_unattached(epoch)

    # What leaves

    def wake(self, at_ms: int) -> None:
        """Asks for a tick at this time at the latest."""
        self.wake_ms = min(self.wake_ms, at_ms)

    def send(
        self,
        node_id: int,
        address: Location | None,
        request: Request | ApiVersionsRequest,
        *,
        to: ReplicaKey | None = None,
    ) -> SentRequest | None:
        """Sends a request to a node, for which it must be ready."""
        if address is None:
            return None
        deadline_ms = self.now_ms + self.config.request_timeout_ms
        request_id = self.connections.send(
            node_id, type(request), deadline_ms, to, self.log.generation, self.log.end_offset
        )
        self.out.sends.append(Send(request_id, node_id, address, request, self.config.request_timeout_ms))
        return self.connections.in_flight(node_id)

    def is_ready(self, node_id: int) -> bool:
        """True if a request may be sent to the node; otherwise wakes up when it may be."""
        ready_ms = self.connections.ready_ms(node_id, self.now_ms)
        if ready_ms > self.now_ms:
            self.wake(ready_ms)
        return ready_ms <= self.now_ms

    def reply(self, ticket: int, response: Response, read: ReadRecords | PieceWish | None = None) -> None:
        """Answers a request."""
        self.out.replies.append(RaftReply(ticket, response, read))

    # What requests have in common

    def error_of_cluster(self, cluster_id: str | None) -> ErrorCode:
        """Returns the error of a request of another cluster; NONE if it names this cluster, or none."""
        if cluster_id is None or cluster_id == self.replica.cluster_id:
            return ErrorCode.NONE
        return ErrorCode.INCONSISTENT_CLUSTER_ID

    def error_of_epoch(self, epoch: int) -> ErrorCode:
        """Returns the error of a request to the leader of an epoch; NONE if this node leads in it."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.role is Role.LEADER else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def error_of_receiver(self, node_id: int, directory_id: bytes) -> ErrorCode:
        """Returns the error of a request that is meant for another node or directory. A request of an older version
        names no receiver, and a sender may not know the directory."""
        if node_id < 0:
            return ErrorCode.NONE
        key = self.replica.key
        is_meant = node_id == key.node_id and directory_id in (NO_UUID, key.directory_id)
        return ErrorCode.NONE if is_meant else ErrorCode.INVALID_VOTER_KEY

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        """Returns the leader's endpoint on the listener of a request."""
        return next((endpoint for endpoint in self.leader_endpoints if endpoint.name.upper() == listener.upper()), None)


def _leading(state: State) -> LeadingRole | None:
    """Returns the state of a leader; None for another role."""
    others = UnattachedState | ProspectiveState | CandidateState | FollowerState | ResignedState
    return None if isinstance(state, others) else state
