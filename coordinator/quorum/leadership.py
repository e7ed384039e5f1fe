"""The leader of the metadata quorum, as answers have named it: its epoch, its id, and the controllers' addresses.

Source: Kafka's QuorumState and KafkaRaftClient.maybeTransition, for an observer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from coordinator.cluster.quorum_state import NOBODY, QuorumState
from protocol.records.control import VotersRecord

MAX_PORT: Final = (1 << 16) - 1


class Location(NamedTuple):
    """The address of a controller."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class NodeEndpoint(Protocol):
    """A node's endpoint in any answer of the quorum."""

    node_id: int
    host: str
    port: int


class Leadership:
    """The known leader. An epoch never goes back, and an epoch's leader never changes."""

    def __init__(self, state: QuorumState, voters: Mapping[int, Location], bootstrap: Sequence[Location]) -> None:
        """`state` was stored on disk; `voters` and `bootstrap` come from the configuration."""
        self.epoch = state.leader_epoch
        self.leader_id = state.leader_id
        self.problem = "no controller has answered yet"
        """The reason why no leader is known, for a caller that gives up waiting."""
        self.static_voters = tuple(sorted(voters))
        """The ids of the voters in the configuration."""
        self._locations = dict(voters)
        self._bootstrap = tuple(dict.fromkeys(bootstrap))
        self._turn = 0
        self._suspected = False
        """True while the leader doesn't answer; another controller may know a new leader."""

    @property
    def state(self) -> QuorumState:
        """The state from which a restart continues."""
        return QuorumState(leader_id=self.leader_id, leader_epoch=self.epoch)

    @property
    def leader(self) -> Location | None:
        """The leader's address; None if no leader is known."""
        if self.leader_id == NOBODY or self._suspected:
            return None
        return self._locations.get(self.leader_id)

    def destination(self) -> Location | None:
        """Returns the next controller to ask: the leader, or else each controller in turn; None if no address is
        known."""
        leader = self.leader
        if leader is not None:
            return leader
        controllers = list(dict.fromkeys((*self._bootstrap, *self._locations.values())))
        if not controllers:
            return None
        self._turn += 1
        return controllers[(self._turn - 1) % len(controllers)]

    def suspect(self) -> None:
        """Marks a leader that didn't answer in time, or gave a wrong answer. Then the other controllers are asked as
        well, in turn.
        """
        self._suspected = True

    def learn(self, voters: VotersRecord, listener: str) -> None:
        """Stores the voters' addresses from the log (KIP-853)."""
        for voter in voters.voters:
            for endpoint in voter.endpoints:
                if endpoint.name.upper() == listener.upper():
                    self._locations[voter.voter_id] = Location(endpoint.host, endpoint.port)

    def place(self, node_id: int, location: Location) -> None:
        """Stores the address of a controller."""
        self._locations[node_id] = location

    def locate(self, endpoints: Iterable[NodeEndpoint]) -> None:
        """Stores the nodes' addresses from an answer; ignores invalid addresses."""
        for endpoint in endpoints:
            if endpoint.node_id >= 0 and endpoint.host and 0 < endpoint.port <= MAX_PORT:
                self._locations[endpoint.node_id] = Location(endpoint.host, endpoint.port)

    def names_leader(self, leader_id: int, epoch: int) -> str | None:
        """Updates the leader of an epoch from an answer; NOBODY while none is elected. Returns the reason if that is
        impossible: a second leader in one epoch."""
        if epoch < self.epoch:
            return None
        if epoch > self.epoch:
            self.epoch, self.leader_id = epoch, max(leader_id, NOBODY)
            self._suspected = False
        elif leader_id >= 0:
            if self.leader_id not in (NOBODY, leader_id):
                return f"names node {leader_id} as the leader of epoch {epoch}, but it is node {self.leader_id}"
            self.leader_id = leader_id
            self._suspected = False
        return None
