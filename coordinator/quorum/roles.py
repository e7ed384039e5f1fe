"""The roles of a node of the quorum, and which role may follow which.

Source: Kafka's QuorumState (KIP-595, KIP-853, KIP-996).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Final


class Role(Enum):
    """The role of a node in an epoch. An observer is a node without a vote: it is Unattached or a Follower."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    """Requests pre-votes, which change no epoch (KIP-996)."""
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    FOLLOWER = "Follower"
    RESIGNED = "Resigned"
    """Has led in this epoch and no longer leads, because it resigned or was restarted."""


class WrongTransition(Exception):
    """A role that may not follow another: a fault of this program."""

    def __init__(self, before: Role, after: Role, epoch: int, new_epoch: int) -> None:
        super().__init__(f"{after.value} in epoch {new_epoch} can't follow {before.value} in epoch {epoch}")


MAY_FOLLOW_IN_EPOCH: Final[Mapping[Role, Set[Role]]] = {
    Role.UNATTACHED: {Role.PROSPECTIVE, Role.FOLLOWER},
    Role.PROSPECTIVE: {Role.UNATTACHED, Role.FOLLOWER},
    Role.CANDIDATE: {Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER},
    Role.LEADER: {Role.RESIGNED},
    Role.FOLLOWER: {Role.PROSPECTIVE},
    # The only voter requests its own vote at once, without a timeout.
    Role.RESIGNED: {Role.PROSPECTIVE},
}
"""The roles that may follow a role in the same epoch."""

MAY_FOLLOW_IN_LATER_EPOCH: Final[Mapping[Role, Set[Role]]] = {
    Role.UNATTACHED: {Role.UNATTACHED, Role.FOLLOWER},
    Role.PROSPECTIVE: {Role.UNATTACHED, Role.FOLLOWER, Role.CANDIDATE},
    Role.CANDIDATE: {Role.UNATTACHED, Role.FOLLOWER},
    Role.LEADER: {Role.UNATTACHED, Role.FOLLOWER},
    Role.FOLLOWER: {Role.UNATTACHED, Role.FOLLOWER},
    Role.RESIGNED: {Role.UNATTACHED, Role.FOLLOWER},
}
"""The roles that may follow a role in a later epoch."""


def check_transition(before: Role, epoch: int, after: Role, new_epoch: int) -> None:
    """Raises WrongTransition if the new role may not follow the role of before, or if the epoch would go back."""
    table = MAY_FOLLOW_IN_EPOCH if new_epoch == epoch else MAY_FOLLOW_IN_LATER_EPOCH
    if new_epoch < epoch or after not in table[before]:
        raise WrongTransition(before, after, epoch, new_epoch)
