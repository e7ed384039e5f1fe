"""The in-sync replicas of a partition, and the progress of its followers, as values of its leader.

Source: kafka.cluster.Partition (CommittedPartitionState, PendingExpandIsr, PendingShrinkIsr) and Replica (KIP-497,
KIP-841, KIP-903).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

NO_OFFSET: Final = -1
"""The offset of a follower that has not fetched since this leadership began."""

NO_BROKER_EPOCH: Final = -1
"""The broker epoch of a follower whose Fetch is too old to have it (KIP-903)."""

NEVER_MS: Final = -(1 << 60)
"""A time longer ago than any allowed lag."""

NO_REPLICAS: Final[frozenset[int]] = frozenset()


class Isr(NamedTuple):
    """In-sync replicas: the committed ISR, and at most one change that the controller hasn't answered.

    Until the controller answers, the leader doesn't know which of the two sets is in force, so records are committed
    only when all replicas of the larger set have them.
    """

    committed: frozenset[int]
    expanding: frozenset[int] = NO_REPLICAS
    shrinking: frozenset[int] = NO_REPLICAS

    @property
    def is_settled(self) -> bool:
        """True if no change waits for the controller."""
        return not self.expanding and not self.shrinking

    @property
    def maximal(self) -> frozenset[int]:
        """All replicas that are, or may already be, in sync: a record that all of them have is committed."""
        return self.committed | self.expanding

    @property
    def proposed(self) -> frozenset[int]:
        """The in-sync replicas that an AlterPartition proposes to the controller."""
        return (self.committed | self.expanding) - self.shrinking

    def expand(self, replica_ids: Collection[int]) -> Isr:
        """Returns the ISR with a proposal that adds these replicas."""
        assert self.is_settled, f"{self}: one change at a time"
        return Isr(self.committed, expanding=frozenset(replica_ids) - self.committed)

    def shrink(self, replica_ids: Collection[int]) -> Isr:
        """Returns the ISR with a proposal that removes these replicas."""
        assert self.is_settled, f"{self}: one change at a time"
        return Isr(self.committed, shrinking=self.committed & frozenset(replica_ids))

    def rolled_back(self) -> Isr:
        """Returns the ISR before the change, which the controller rejected."""
        return Isr(self.committed)


class Follower:
    """The progress of a replica on another broker, as its fetches show it. It is a value, never changed."""

    __slots__ = (
        "broker_epoch", "caught_up_ms", "fetched_ms", "leader_end_offset", "log_end_offset", "log_start_offset",
        "replica_id",
    )  # fmt: skip

    def __init__(
        self,
        replica_id: int,
        log_end_offset: int = NO_OFFSET,
        log_start_offset: int = NO_OFFSET,
        caught_up_ms: int = NEVER_MS,
        fetched_ms: int = NEVER_MS,
        leader_end_offset: int = NO_OFFSET,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        self.replica_id = replica_id
        self.log_end_offset = log_end_offset
        """The follower has every record below this offset."""
        self.log_start_offset = log_start_offset
        self.caught_up_ms = caught_up_ms
        """The time when it last had all of the leader's records."""
        self.fetched_ms = fetched_ms
        """The time of its last fetch."""
        self.leader_end_offset = leader_end_offset
        """The leader's log end offset at its last fetch."""
        self.broker_epoch = broker_epoch

    def __repr__(self) -> str:
        return f"Follower({self.replica_id} at {self.log_end_offset}, caught up at {self.caught_up_ms} ms)"

    def fetched(
        self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int, broker_epoch: int
    ) -> Follower:
        """Returns the follower after a fetch from this offset, when the leader's log ended at `leader_end_offset`."""
        caught_up_ms = self.caught_up_ms
        if offset >= leader_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:  # it now has all records that the leader had at its last fetch
            caught_up_ms = max(caught_up_ms, self.fetched_ms)
        leader_end_offset = max(leader_end_offset, self.leader_end_offset)
        return Follower(
            self.replica_id, offset, log_start_offset, caught_up_ms, now_ms, leader_end_offset, broker_epoch
        )

    def in_new_epoch(self, leader_end_offset: int, *, in_sync: bool, now_ms: int) -> Follower:
        """Returns the follower in a new epoch of the same leader: its offset stays, and an in-sync follower has
        replica.lag.time.max.ms to fetch again."""
        since_ms = now_ms if in_sync else NEVER_MS
        return Follower(
            self.replica_id,
            self.log_end_offset,
            self.log_start_offset,
            since_ms,
            since_ms,
            leader_end_offset,
            self.broker_epoch,
        )

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """True if it has all of the leader's records, or had them within replica.lag.time.max.ms."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms


class IsrRules:
    """Decides which followers may be in sync, by the leader's options and the cluster's metadata."""

    __slots__ = ("broker_epoch", "max_lag_ms", "may_be_in_sync")

    def __init__(
        self,
        may_be_in_sync: Callable[[Follower], bool],
        max_lag_ms: Callable[[], int],
        broker_epoch: Callable[[int], int] = lambda _: NO_BROKER_EPOCH,
    ) -> None:
        self.may_be_in_sync = may_be_in_sync
        """Returns True for a follower whose broker is not fenced, not stopping, and fetches in the epoch of its
        registration."""
        self.max_lag_ms = max_lag_ms
        """replica.lag.time.max.ms."""
        self.broker_epoch = broker_epoch
        """Returns the epoch of a live broker by its id."""

    def is_stale(self, broker_id: int, broker_epoch: int) -> bool:
        """True for a fetch that a broker sent before it registered again (KIP-903)."""
        return NO_BROKER_EPOCH < broker_epoch < self.broker_epoch(broker_id)


NO_OTHERS: Final = IsrRules(lambda _: False, lambda: 0)
"""The rules of a cluster with one broker."""
