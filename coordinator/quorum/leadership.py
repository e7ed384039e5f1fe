"""Who leads the metadata quorum, as far as answers have told: its epoch, its leader, and where controllers listen.

Source: Kafka's QuorumState and KafkaRaftClient.maybeTransition, as an observer goes through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from coordinator.cluster.quorum_state import NOBODY, QuorumState
from protocol.records.control import VotersRecord

MAX_PORT: Final = (1 << 16) - 1


class Location(NamedTuple):
    """Where a controller listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class NodeEndpoint(Protocol):
    """Of any answer of the quorum's."""

    node_id: int
    host: str
    port: int


class Leadership:
    """The leader, as far as it is known. An epoch never goes back, and an epoch's leader never changes."""

    def __init__(self, state: QuorumState, voters: Mapping[int, Location], bootstrap: Sequence[Location]) -> None:
        """`state` is what was on disk; `voters` and `bootstrap` what the configuration says."""
        self.epoch = state.leader_epoch
        self.leader_id = state.leader_id
        self.problem = "no controller has answered yet"
        """Why nobody is known to lead, for who gives up waiting."""
        self._locations = dict(voters)
        self._bootstrap = tuple(dict.fromkeys(bootstrap))
        self._turn = 0
        self._suspected = False
        """True while the leader does not answer: another controller may know of a new one."""

    @property
    def state(self) -> QuorumState:
        """The state that a restart begins with."""
        return QuorumState(leader_id=self.leader_id, leader_epoch=self.epoch)

    @property
    def leader(self) -> Location | None:
        """Where the leader is asked; None while nobody is known to lead."""
        if self.leader_id == NOBODY or self._suspected:
            return None
        return self._locations.get(self.leader_id)

    def destination(self) -> Location | None:
        """Who is asked next: the leader, else each controller in turn. None where no address is known at all."""
        leader = self.leader
        if leader is not None:
            return leader
        controllers = list(dict.fromkeys((*self._bootstrap, *self._locations.values())))
        if not controllers:
            return None
        self._turn += 1
        return controllers[(self._turn - 1) % len(controllers)]

    def suspect(self) -> None:
        """The leader did not answer in time, or not as a leader does: others are asked, it among them."""
        self._suspected = True

    def learn(self, voters: VotersRecord, listener: str) -> None:
        """Where the voters listen that the log names (KIP-853)."""
        for voter in voters.voters:
            for endpoint in voter.endpoints:
                if endpoint.name.upper() == listener.upper():
                    self._locations[voter.voter_id] = Location(endpoint.host, endpoint.port)

    def locate(self, endpoints: Iterable[NodeEndpoint]) -> None:
        """Where an answer says that nodes listen; what cannot be an address is left out."""
        for endpoint in endpoints:
            if endpoint.node_id >= 0 and endpoint.host and 0 < endpoint.port <= MAX_PORT:
                self._locations[endpoint.node_id] = Location(endpoint.host, endpoint.port)

    def names_leader(self, leader_id: int, epoch: int) -> str | None:
        """An answer names the leader of an epoch, NOBODY while none is elected. What is wrong with that, if it cannot
        be: a second leader in one epoch."""
        if epoch < self.epoch:
            return None
        if epoch > self.epoch:
            self.epoch, self.leader_id = epoch, max(leader_id, NOBODY)
            self._suspected = False
        elif leader_id >= 0:
            if self.leader_id not in (NOBODY, leader_id):
                return f"names node {leader_id} as the leader of epoch {epoch}, which is node {self.leader_id}"
            self.leader_id = leader_id
            self._suspected = False
        return None
