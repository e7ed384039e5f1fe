"""A member of a classic group: its JoinGroup data, its assignment, and the answers that it waits for.

Source: org.apache.kafka.coordinator.group.classic.ClassicGroupMember.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from coordinator.engine.result import Ticket
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse

NO_ASSIGNMENT = b""


class Strategy(NamedTuple):
    """An assignment strategy that a member supports ("protocol" in Kafka's messages), with its metadata."""

    name: str
    metadata: bytes


class ClassicMember:
    """A member. Its tickets and `is_new` are only in memory; its group's record has the rest."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "strategies",
        "sync_ticket",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        strategies: tuple[Strategy, ...],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.strategies = strategies
        self.assignment = assignment
        self.is_new = False
        """True if the member joined during a rebalance: its client may be gone before it gets its member id."""
        self.join_ticket: Ticket[JoinGroupResponse] | None = None
        self.sync_ticket: Ticket[SyncGroupResponse] | None = None

    def copy(self) -> ClassicMember:
        """Returns a copy, for a decision to change."""
        twin = ClassicMember(
            self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            strategies=self.strategies,
            assignment=self.assignment,
        )
        twin.is_new, twin.join_ticket, twin.sync_ticket = self.is_new, self.join_ticket, self.sync_ticket
        return twin

    @property
    def is_static(self) -> bool:
        """True for a static member, which has an instance id (KIP-345)."""
        return self.instance_id is not None

    @property
    def is_joining(self) -> bool:
        """True if the member waits for the rebalance to complete."""
        return self.join_ticket is not None

    @property
    def is_syncing(self) -> bool:
        """True if the member waits for the leader's assignment."""
        return self.sync_ticket is not None

    @property
    def is_excused(self) -> bool:
        """True if the member's session can't expire, because the member waits for an answer. The session of a new
        member can expire, because its client may be gone."""
        return not self.is_new and (self.is_joining or self.is_syncing)

    def metadata(self, strategy: str) -> bytes:
        """Returns the member's metadata for a strategy. Raises ValueError if it doesn't support the strategy."""
        for name, metadata in self.strategies:
            if name == strategy:
                return metadata
        raise ValueError(f"member {self.member_id} does not know the strategy {strategy}")

    def vote(self, candidates: Container[str]) -> str:
        """Returns the strategy that it prefers among those that all members support."""
        return next(name for name, _ in self.strategies if name in candidates)
