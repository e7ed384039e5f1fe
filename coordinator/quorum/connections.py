"""Requests of the raft core that have no answer yet: at most one for each node.

Source: Kafka's RequestManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator.quorum.leadership import Location
from coordinator.quorum.replicas import ReplicaKey

NEVER: Final = 1 << 62
"""A time that never comes."""

FIRST_BOOTSTRAP_ID: Final = -2
"""The id of the first address from the configuration; the others count down (-1 is an unknown node)."""


class SentRequest(NamedTuple):
    """A request without an answer."""

    correlation_id: int
    node_id: int
    kind: type
    """The class of the request."""
    deadline_ms: int
    to: ReplicaKey | None = None
    """The voter that a Vote or a BeginQuorumEpoch is for."""
    generation: int = 0
    """The log's generation and end when a Fetch was sent."""
    offset: int = 0


class RaftConnections:
    """The requests in flight, and the pauses after failures."""

    def __init__(self, bootstrap: Iterable[Location]) -> None:
        self.bootstrap = tuple(
            (FIRST_BOOTSTRAP_ID - i, location) for i, location in enumerate(dict.fromkeys(bootstrap))
        )
        self._in_flight: dict[int, SentRequest] = {}
        self._paused_until: dict[int, int] = {}
        self._last_id = 0
        self.search_ms = 0
        """The time of the next search for a leader, so that controllers without a leader aren't asked incessantly."""

    def send(
        self,
        node_id: int,
        kind: type,
        deadline_ms: int,
        to: ReplicaKey | None = None,
        generation: int = 0,
        offset: int = 0,
    ) -> int:
        """Counts a request, and returns its correlation id."""
        self._last_id += 1
        self._in_flight[node_id] = SentRequest(self._last_id, node_id, kind, deadline_ms, to, generation, offset)
        return self._last_id

    def ready_ms(self, node_id: int, now_ms: int) -> int:
        """Returns the time from which a request may be sent to the node: now, or later."""
        request = self._in_flight.get(node_id)
        waits_until = request.deadline_ms if request is not None else 0
        return max(now_ms, waits_until, self._paused_until.get(node_id, 0))

    def in_flight(self, node_id: int) -> SentRequest | None:
        """Returns the request to a node that has no answer yet."""
        return self._in_flight.get(node_id)

    def is_paused(self, node_id: int, now_ms: int) -> bool:
        """True after a request to the node has failed."""
        return self._paused_until.get(node_id, 0) > now_ms

    @property
    def first_deadline_ms(self) -> int:
        """The time at which the next request times out."""
        return min((request.deadline_ms for request in self._in_flight.values()), default=NEVER)

    def bootstrap_deadline_ms(self, now_ms: int) -> int:
        """Returns the time at which no request to a configured address is in flight, if none is answered."""
        return max((request.deadline_ms for request in self._in_flight.values() if request.node_id < 0), default=now_ms)

    def expire(self, now_ms: int) -> list[int]:
        """Drops the requests that have timed out, and returns their nodes."""
        expired = [node_id for node_id, request in self._in_flight.items() if request.deadline_ms <= now_ms]
        for node_id in expired:
            del self._in_flight[node_id]
        return expired

    def answered(self, correlation_id: int) -> SentRequest | None:
        """Returns the request with that id, and drops it; None if its answer is no longer expected."""
        for node_id, request in self._in_flight.items():
            if request.correlation_id == correlation_id:
                del self._in_flight[node_id]
                return request
        return None

    def pause(self, node_id: int, until_ms: int) -> None:
        """Sends nothing to a node for a while, because a request has failed."""
        self._paused_until[node_id] = until_ms

    def reset(self) -> None:
        """Forgets all requests: their answers belong to a role or an epoch that is over."""
        self._in_flight.clear()
        self._paused_until.clear()
