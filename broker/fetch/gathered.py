"""The outcome of one pass over the partitions of a fetch."""

from __future__ import annotations

from broker.fetch.partition import FetchedPartition
from broker.replica.partition import Partition
from storage.cold import ColdRead
from storage.segment.file import EMPTY


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

    def release(self) -> None:
        """Releases the partitions and mapped files: the session, which lives on, must not keep them alive."""
        for partition in self.partitions:
            partition.records = EMPTY
            partition.replica = None
