"""The progress of replicas that fetch from the quorum's leader, as DescribeQuorum describes it.

Source: Kafka's LeaderState.ReplicaState (KIP-836).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.types import Uuid

SESSION_MS: Final = 300_000
"""Time for which a replica that no longer fetches is described (LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""

UNKNOWN_MS: Final = -1


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: the node, and the id of its log directory."""

    node_id: int
    directory_id: Uuid


class ReplicaProgress(NamedTuple):
    """The last fetch of a replica: its offset and time."""

    key: ReplicaKey
    end_offset: int
    fetched_ms: int
    caught_up_ms: int = UNKNOWN_MS
    """The time when it last had all of the leader's records; UNKNOWN_MS if never."""
    leader_end_offset: int = 0
    """The end of the leader's log at that fetch."""
