"""The asyncio side of the quorum's leader: delays fetches until there are new records, and reads pieces of snapshots.

Source: the fetch purgatory of Kafka's KafkaRaftClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.clock import Clock, done_by
from broker.metadata.led_log import LedLog
from broker.metadata.opening import ClusterPart, MetadataSettings
from broker.metadata.snapshots import Snapshots
from coordinator.cluster.formatting import Identity
from coordinator.quorum.leader import QuorumLeader, Voter
from coordinator.quorum.pieces import PieceWish
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.snapshot_pieces import piece_response, piece_wish
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

if TYPE_CHECKING:
    from broker.metadata.observing import Threads


class LeadingQuorum:
    """The quorum that this node leads."""

    def __init__(self, voter: Voter, log: LedLog, snapshots: Snapshots, clock: Clock, threads: Threads) -> None:
        self.leader = QuorumLeader(voter, log)
        self._log = log
        self._snapshots = snapshots
        self._clock = clock
        self._threads = threads

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
