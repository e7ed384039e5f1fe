"""The outcome of one pass over the partitions of a fetch."""

from __future__ import annotations

from typing import Final

from broker.clock import NS_PER_MS
from broker.fetch.partition import FetchedPartition
from broker.replica.partition import Partition
from storage.cold import ColdRead
from storage.segment.file import EMPTY

HELD_MS: Final = 5
"""Maximum time between a follower's rounds because of batching. A follower has all records that are older than this."""

HELD_BYTES: Final = 512 * 1024
"""The bytes that are worth a round."""


class Gathered:
    """The answers of all partitions of a fetch, and the remaining bytes of the response's limit."""

    __slots__ = ("cold", "has_missing", "is_plain", "is_urgent", "left", "may_grow", "partitions", "size_bytes")

    def __init__(self, partitions: list[FetchedPartition], max_bytes: int) -> None:
        self.partitions = partitions
        self.size_bytes = 0
        """The size of all records that were read."""
        self.left = max_bytes
        self.may_grow = False
        """True if an append to a partition may complete the fetch."""
        self.cold: list[ColdRead] | None = None
        """Reads that would wait for a disk: their partitions are read again after a thread has read ahead."""
        self.is_urgent = False
        """True if a partition has an answer that must not wait."""
        self.has_missing = False
        self.is_plain = True
        """True if all answers consist only of offsets, records and error codes."""

    @property
    def watched(self) -> list[Partition]:
        """The partitions whose appends may complete the fetch."""
        return [partition.replica for partition in self.partitions if partition.replica is not None]

    def note(self, partition: FetchedPartition) -> None:
        """Updates the flags from an answer that may have more than records."""
        self.is_urgent = self.is_urgent or partition.is_urgent
        self.is_plain = self.is_plain and partition.is_plain
        self.has_missing = self.has_missing or partition.is_missing

    def wait_for_disk(self, cold: ColdRead) -> None:
        """Adds a read for a thread to do ahead."""
        if self.cold is None:
            self.cold = []
        self.cold.append(cold)

    def use(self, size_bytes: int) -> None:
        """Subtracts bytes from the response's limit."""
        self.left = max(self.left - size_bytes, 0)

    def hold_ms(self, served_ns: int, now_ns: int) -> int:
        """Returns the milliseconds for which a follower's answer may be held back, so that more records go with it; 0
        if it must be sent now. `served_ns` is the time of its last records.

        A round of replication costs more than its bytes: a fetch, its answer, and two processes that wake up for them.
        So a follower gets the next records a few milliseconds later, unless something waits for their commit: a
        producer with acks=all, a consumer at the log's end, a coordinator.
        """
        left_ns = served_ns + HELD_MS * NS_PER_MS - now_ns
        if left_ns <= 0 or self.size_bytes >= HELD_BYTES:
            return 0
        for fetched in self.partitions:
            if len(fetched.records) and fetched.replica is not None and fetched.replica.is_awaited:
                return 0
        return -(-left_ns // NS_PER_MS)

    def release(self) -> None:
        """Releases the partitions and mapped files: the session, which lives on, must not keep them alive."""
        for partition in self.partitions:
            partition.records = EMPTY
            partition.replica = None
