"""The metadata quorum as handlers use it, and the quorum of a node that no other node can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from broker.clock import Clock
from broker.metadata.led_log import LedLog
from broker.metadata.opening import MetadataSettings
from coordinator.cluster.formatting import Identity
from coordinator.quorum.ready import Request
from coordinator.quorum.replicas import ReplicaKey, ReplicaProgress
from coordinator.quorum.voters import Voter, error_of_added, error_of_removed
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


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


class LoneQuorum:
    """The quorum of a node without a listener for controllers: it stays the only voter."""

    def __init__(self, voter: Voter, log: LedLog, clock: Clock) -> None:
        self._voter = voter
        self._log = log
        self._clock = clock

    @property
    def leader_id(self) -> int:
        return self._voter.key.node_id

    async def answer(self, request: Request, version: int, listener: str) -> object:
        """Rejects the request of a client to change the voters."""
        if isinstance(request, AddRaftVoterRequest):
            error = error_of_added(self._voter, request)
            return AddRaftVoterResponse(error_code=error.code, error_message=error.message)
        assert isinstance(request, RemoveRaftVoterRequest), f"{request} v{version} came on {listener}"
        error = error_of_removed(self._voter, request)
        return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message)

    def describe(self) -> DescribedQuorum:
        """Returns the progress of this voter."""
        now_ms, log = self._clock.now_ms(), self._log
        own = ReplicaProgress(self._voter.key, log.end_offset, fetched_ms=now_ms, caught_up_ms=now_ms)
        return DescribedQuorum(self.leader_id, log.epoch, log.high_watermark, [own], [])


def lone_quorum(settings: MetadataSettings, identity: Identity, log: LedLog, clock: Clock) -> LoneQuorum:
    """Returns the quorum of this node."""
    options = settings.options
    key = ReplicaKey(options.node_id, identity.directory_ids[settings.metadata_dir])
    return LoneQuorum(Voter(identity.cluster_id, key, options.controller_listeners), log, clock)
