"""The states of a fetched partition, and the states that may follow each other."""

from __future__ import annotations

from enum import Enum
from typing import Final, Generic, TypeVar

from coordinator.replication.session import PartitionKey
from coordinator.replication.truncation import ReplicaLog
from protocol.types import TopicPartition

L = TypeVar("L", bound=ReplicaLog)


class FetchState(Enum):
    """Kafka's ReplicaState, and the states in which its fetcher thread waits."""

    FETCHING = "fetching"
    DELAYED = "delayed"
    """The partition is left out of requests until its pause is over."""
    CORRECTING = "correcting"
    """A thread truncates or flushes the log."""
    OUT_OF_RANGE = "out of range"
    """The leader is asked for the start and end of its log."""
    FAILED = "failed"
    """The partition is not fetched until its leader epoch changes."""


MAY_FOLLOW: Final[dict[FetchState, frozenset[FetchState]]] = {
    FetchState.FETCHING: frozenset(
        {FetchState.DELAYED, FetchState.CORRECTING, FetchState.OUT_OF_RANGE, FetchState.FAILED}
    ),
    FetchState.DELAYED: frozenset({FetchState.FETCHING}),
    FetchState.CORRECTING: frozenset({FetchState.FETCHING, FetchState.DELAYED, FetchState.FAILED}),
    FetchState.OUT_OF_RANGE: frozenset(
        {FetchState.FETCHING, FetchState.DELAYED, FetchState.CORRECTING, FetchState.FAILED}
    ),
    FetchState.FAILED: frozenset(),
}


class FollowedPartition(Generic[L]):
    """A partition in one leader epoch. It is fetched from its log's end, which the log itself has; nothing here
    duplicates it."""

    __slots__ = ("key", "leader_end", "leader_epoch", "leader_high_watermark", "name", "ready_ms", "replica", "state")

    def __init__(self, key: PartitionKey, name: TopicPartition, replica: L, leader_epoch: int) -> None:
        self.key = key
        self.name = name
        self.replica = replica
        self.leader_epoch = leader_epoch
        self.state = FetchState.FETCHING
        self.ready_ms = 0
        """The end of its pause, if it is delayed."""
        self.leader_high_watermark: int | None = None
        """The leader's high watermark in its last answer."""
        self.leader_end: int | None = None
        """The leader's log end offset, for a partition that is out of range."""

    def __repr__(self) -> str:
        return f"FollowedPartition({self.name}, epoch {self.leader_epoch}, {self.state.value})"

    @property
    def is_in_sync(self) -> bool:
        """True if it has all records that were committed in the leader's last answer."""
        committed = self.leader_high_watermark
        return committed is not None and self.replica.log_end_offset >= committed

    def enter(self, state: FetchState) -> None:
        """Changes the state."""
        assert state in MAY_FOLLOW[self.state], f"{self}: {state.value} does not follow"
        self.state = state
        self.leader_end = None
