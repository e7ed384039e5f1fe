"""A parsed Fetch request: by hand (wire.py), or from a decoded message (broker/handlers/fetch.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from broker.fetch.partition import FetchedPartition
from broker.replica.partition import Partition
from broker.replica.read_replica import RackAwareSelector
from broker.replica.replica import READ_COMMITTED
from broker.replica.throttle import ReplicationThrottle, names
from coordinator.replication.isr import IsrRules
from coordinator.replication.roles import FollowerFetch, Leading
from protocol.errors import ErrorCode

FIRST_WHOLE_BATCH_VERSION: Final = 3
"""First version that never returns only a part of a batch: its clients fetch again with a larger limit."""
FIRST_BATCH_VERSION: Final = 4
"""Earlier versions read message sets."""
FIRST_READ_REPLICA_VERSION: Final = 11
"""First version whose clients can be sent to a follower, and can read from it (KIP-392)."""
FIRST_TOPIC_ID_VERSION: Final = 13
CONSUMER: Final = -1
"""The replica id of a consumer."""

NOTHING_DENIED: Final[Mapping[bytes, ErrorCode]] = {}

PartitionKey: TypeAlias = "tuple[bytes, int]"
"""The topic's key (`FetchedPartition.key`), and the partition's index."""


class FetchParams:
    """The size limits, the wait and the isolation level of a fetch
    (org.apache.kafka.server.storage.log.FetchParams)."""

    __slots__ = ("isolation_level", "max_bytes", "max_wait_ms", "min_bytes")

    def __init__(self, min_bytes: int, max_bytes: int, max_wait_ms: int, isolation_level: int) -> None:
        self.min_bytes = min_bytes
        self.max_bytes = max(max_bytes, 0)
        self.max_wait_ms = max_wait_ms
        self.isolation_level = isolation_level

    @property
    def may_wait(self) -> bool:
        """True if the fetch may have to wait for records."""
        return self.min_bytes > 0 and self.max_wait_ms > 0

    @property
    def committed_only(self) -> bool:
        """True if the fetch stops at the last stable offset."""
        return self.isolation_level == READ_COMMITTED


class FetchingReplica:
    """The follower that fetches, and the time of its request."""

    __slots__ = ("_is_stale", "broker_epoch", "broker_id", "is_noted", "received_ms", "throttle")

    def __init__(self, broker_id: int, broker_epoch: int, received_ms: int, throttle: ReplicationThrottle) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.received_ms = received_ms
        self.throttle = throttle
        """The throttle of followers' reads from this broker."""
        self.is_noted = False
        """True once its progress is recorded, which later attempts of a parked request don't repeat."""
        self._is_stale: bool | None = None

    def fetch_of(self, fetched: FetchedPartition) -> FollowerFetch:
        """Returns the part of its fetch for a partition."""
        return FollowerFetch(
            self.broker_id, self.broker_epoch, fetched.fetch_offset, fetched.replica_log_start, self.received_ms
        )

    def is_stale(self, rules: IsrRules) -> bool:
        """True if its broker has registered again since (KIP-903), as seen at the first partition."""
        if self._is_stale is None:
            self._is_stale = rules.is_stale(self.broker_id, self.broker_epoch)
        return self._is_stale

    def is_held_back(self, partition: Partition) -> bool:
        """True if it gets no records for now: it is throttled, and not in sync."""
        if not self.throttle.is_on or not is_throttled(partition):
            return False
        role = partition.role
        is_in_sync = isinstance(role, Leading) and self.broker_id in role.isr.committed
        return not is_in_sync and self.throttle.is_exceeded

    def note_throttled(self, answers: Sequence[FetchedPartition]) -> None:
        """Counts the records of throttled partitions in its answer."""
        size_bytes = sum(
            [
                len(answer.records)
                for answer in answers
                if answer.replica is not None and len(answer.records) and is_throttled(answer.replica)
            ]
        )
        if size_bytes:
            self.throttle.record(size_bytes)


def is_throttled(partition: Partition) -> bool:
    """True if leader.replication.throttled.replicas has this broker's replica."""
    replicas = partition.config.leader_replication_throttled_replicas
    return bool(replicas) and names(replicas, partition.name.partition, partition.role.leader_id)


class ParsedFetch(FetchParams):
    """One Fetch request, parsed."""

    __slots__ = (
        "denied",
        "forgotten",
        "named",
        "needs_checks",
        "only_from_leader",
        "replica",
        "selector",
        "session_epoch",
        "session_id",
        "uses_topic_ids",
        "version",
    )

    def __init__(
        self,
        version: int,
        min_bytes: int,
        max_bytes: int,
        max_wait_ms: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        named: list[FetchedPartition],
        forgotten: Sequence[PartitionKey] = (),
        replica: FetchingReplica | None = None,
    ) -> None:
        super().__init__(min_bytes, max_bytes, max_wait_ms, isolation_level)
        self.version = version
        self.uses_topic_ids = version >= FIRST_TOPIC_ID_VERSION
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.named = named
        """The partitions that the request names, in its order; with duplicates."""
        self.forgotten = forgotten
        """The partitions to remove from its session."""
        self.replica = replica
        """The follower that fetches; None for a consumer."""
        self.only_from_leader = replica is not None or version < FIRST_READ_REPLICA_VERSION
        """True if no follower may answer."""
        self.selector: RackAwareSelector | None = None
        """Selects another replica to read from; None if there is no choice."""
        self.needs_checks = replica is not None or version < FIRST_BATCH_VERSION
        """True if `checked` decides about every partition: for a follower, which must have a replica, for a client too
        old to read every batch, for a client that may not read all topics, and if another replica may be selected."""
        self.denied: Mapping[bytes, ErrorCode] = NOTHING_DENIED
        """The errors of topics that the client may not read, by key."""

    def deny(self, errors: Mapping[bytes, ErrorCode]) -> None:
        """Answers the partitions of these topics with their errors."""
        self.denied, self.needs_checks = errors, True

    def choose_by(self, selector: RackAwareSelector | None) -> None:
        """Sets the selector of the replicas to read from."""
        if selector is not None and not self.only_from_leader:
            self.selector, self.needs_checks = selector, True
