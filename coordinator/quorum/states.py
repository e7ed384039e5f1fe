"""The state of each role.

Source: Kafka's UnattachedState, ProspectiveState, CandidateState, FollowerState, ResignedState, EpochElection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias

from coordinator.quorum.observer import Fetching
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.voter_set import VoterNode, VoterSet

UPDATE_PERIODS: Final = 3
"""Fetch timeouts between two UpdateRaftVoter requests (FollowerState.updateVoterPeriodMs)."""


class Votes:
    """The votes of an election, or its pre-votes."""

    def __init__(self, voters: VoterSet, majority: int) -> None:
        self._voters = {voter.key.node_id: voter for voter in voters}
        self._majority = majority
        self.granted: set[int] = set()
        self._rejected: set[int] = set()

    def record(self, node_id: int, *, granted: bool) -> None:
        """Counts a voter's answer. A granted vote stays granted."""
        if node_id not in self._voters:
            return
        if granted:
            self.granted.add(node_id)
            self._rejected.discard(node_id)
        elif node_id not in self.granted:
            self._rejected.add(node_id)

    @property
    def unrecorded(self) -> list[VoterNode]:
        """The voters that have not answered."""
        return [
            voter
            for node_id, voter in self._voters.items()
            if node_id not in self.granted and node_id not in self._rejected
        ]

    @property
    def are_granted(self) -> bool:
        """True if a majority has granted its vote."""
        return len(self.granted) >= self._majority

    @property
    def are_rejected(self) -> bool:
        """True if a majority can no longer be reached."""
        return len(self._voters) - len(self._rejected) < self._majority


@dataclass(slots=True)
class UnattachedState:
    """A node that knows no leader of its epoch, and perhaps has voted."""

    role: ClassVar[Role] = Role.UNATTACHED
    election_ms: int
    """The time at which a voter begins an election."""


@dataclass(slots=True)
class ProspectiveState:
    """A voter that requests pre-votes."""

    role: ClassVar[Role] = Role.PROSPECTIVE
    votes: Votes
    election_ms: int
    retries: int
    """Number of elections that this node has lost one after another."""


@dataclass(slots=True)
class CandidateState:
    """A voter that requests votes in an epoch of its own."""

    role: ClassVar[Role] = Role.CANDIDATE
    votes: Votes
    election_ms: int
    retries: int
    is_lost: bool = False
    """True once a majority has rejected it."""


@dataclass(slots=True)
class FollowerState:
    """A replica that fetches from the epoch's leader."""

    role: ClassVar[Role] = Role.FOLLOWER
    fetch_ms: int
    """The time at which a voter gives up the leader."""
    update_ms: int
    """The time of the next UpdateRaftVoter, AddRaftVoter or RemoveRaftVoter."""
    has_fetched: bool = False
    """True once the leader has answered a Fetch."""
    has_sent_update: bool = False
    """True once UpdateRaftVoter was sent."""
    has_updated: bool = False
    """True once the leader has this voter's endpoints (kraft.version 0)."""
    fetching: Fetching | None = None
    """The progress of fetching a snapshot."""


@dataclass(slots=True)
class ResignedState:
    """A node that has led in this epoch."""

    role: ClassVar[Role] = Role.RESIGNED
    election_ms: int
    preferred: Sequence[ReplicaKey]
    """The voters that should lead next, the most up-to-date first."""
    unacknowledged: set[int]
    """The voters that have not answered EndQuorumEpoch."""


class LeadingRole(Protocol):
    """The state of a leader, as the transitions know it; `leading.py` has the rest."""

    epoch_start_offset: int

    @property
    def role(self) -> Role: ...

    def begin(self) -> None:
        """Writes the epoch's first batch."""
        ...

    def end(self) -> None:
        """Answers everything that waits, because this node no longer leads."""
        ...


State: TypeAlias = UnattachedState | ProspectiveState | CandidateState | FollowerState | ResignedState | LeadingRole
