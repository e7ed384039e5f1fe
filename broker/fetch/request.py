"""What a Fetch asks for, read by hand (broker/fast/fetch.py) or out of a decoded message (broker/handlers/fetch.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from broker.fetch.partition import FetchedPartition
from broker.replica.replica import READ_COMMITTED

FIRST_WHOLE_BATCH_VERSION: Final = 3
"""Since then nobody is given a part of a batch alone: a client knows to ask again."""
FIRST_BATCH_VERSION: Final = 4
"""Before it, answers are message sets."""
FIRST_TOPIC_ID_VERSION: Final = 13
CONSUMER: Final = -1
"""The replica id of who follows nobody."""

PartitionKey: TypeAlias = "tuple[bytes, int]"
"""A topic as flexible requests spell it (see `FetchedPartition.key`), and a partition's number."""


class Limits:
    """How much a fetch wants, what of it, and how long it waits for that."""

    __slots__ = ("isolation_level", "max_bytes", "max_wait_ms", "min_bytes")

    def __init__(self, min_bytes: int, max_bytes: int, max_wait_ms: int, isolation_level: int) -> None:
        self.min_bytes = min_bytes
        self.max_bytes = max(max_bytes, 0)
        self.max_wait_ms = max_wait_ms
        self.isolation_level = isolation_level

    @property
    def may_wait(self) -> bool:
        """True where there may be too little to be answered at once."""
        return self.min_bytes > 0 and self.max_wait_ms > 0

    @property
    def committed_only(self) -> bool:
        """True where nothing of an open transaction is wanted."""
        return self.isolation_level == READ_COMMITTED


class FetchingReplica:
    """The broker that fetches to follow, and when its request came."""

    __slots__ = ("broker_epoch", "broker_id", "is_noted", "received_ms")

    def __init__(self, broker_id: int, broker_epoch: int, received_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.received_ms = received_ms
        self.is_noted = False
        """True once its progress is noted: not again when a request that has waited is looked at anew."""


class ParsedFetch(Limits):
    """One request."""

    __slots__ = (
        "forgotten", "is_special", "named", "replica", "session_epoch", "session_id", "uses_topic_ids", "version",
    )  # fmt: skip

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
        """The partitions that it names, in its order; one that it names twice is there twice."""
        self.forgotten = forgotten
        """The partitions that leave its session."""
        self.replica = replica
        """None for consumers."""
        self.is_special = replica is not None or version < FIRST_BATCH_VERSION
        """True of a follower, which must have a replica, and of a client that cannot read everything."""
