"""The progress of replicas that fetch from the quorum's leader, as DescribeQuorum describes it.

Source: Kafka's LeaderState.ReplicaState (KIP-836).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.types import Uuid

SESSION_MS: Final = 300_000
"""Time for which a replica that no longer fetches is described (LeaderState.OBSERVER_SESSION_TIMEOUT_MS)."""

MAX_REPLICAS: Final = 4_096
"""Maximum number of described replicas. A cluster has hundreds; a peer can invent any number of ids."""

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


class Observers:
    """The progress of the quorum's observers."""

    def __init__(self) -> None:
        self._progress: dict[ReplicaKey, ReplicaProgress] = {}

    def fetched(self, key: ReplicaKey, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Records a fetch from this offset on: the replica has every record before it."""
        before = self._progress.pop(key, None)
        caught_up_ms = UNKNOWN_MS if before is None else before.caught_up_ms
        if offset >= leader_end_offset:
            caught_up_ms = max(now_ms, caught_up_ms)
        elif before is not None and 0 < before.leader_end_offset <= offset:
            caught_up_ms = max(before.fetched_ms, caught_up_ms)
        fetched_ms = now_ms if before is None else max(now_ms, before.fetched_ms)
        self._progress[key] = ReplicaProgress(key, offset, fetched_ms, caught_up_ms, leader_end_offset)
        if len(self._progress) > MAX_REPLICAS:
            del self._progress[next(iter(self._progress))]  # the replica whose last fetch is longest ago

    def active(self, now_ms: int) -> list[ReplicaProgress]:
        """Returns the observers that have fetched within SESSION_MS, and removes the others."""
        gone = [key for key, progress in self._progress.items() if now_ms - progress.fetched_ms >= SESSION_MS]
        for key in gone:
            del self._progress[key]
        return sorted(self._progress.values())
