"""What one pass over the partitions of a fetch has found."""

from __future__ import annotations

from broker.fetch.partition import FetchedPartition
from broker.replica.partition import Partition
from storage.segment.cold import ColdRead
from storage.segment.file import EMPTY


class Gathered:
    """What all partitions of a fetch answer, and what is left of the bytes that they may."""

    __slots__ = ("cold", "has_missing", "is_plain", "is_urgent", "left", "may_grow", "partitions", "size_bytes")

    def __init__(self, partitions: list[FetchedPartition], max_bytes: int) -> None:
        self.partitions = partitions
        self.size_bytes = 0
        """Of records."""
        self.left = max_bytes
        self.may_grow = False
        """True where more is waited for in any partition."""
        self.cold: list[ColdRead] | None = None
        """Reads that would wait for a disk: their partitions are answered after that."""
        self.is_urgent = False
        """True where the client should hear of it now."""
        self.has_missing = False
        self.is_plain = True
        """True where nothing has to be told but offsets, records and error codes."""

    @property
    def watched(self) -> list[Partition]:
        """Where more is waited for."""
        return [each.replica for each in self.partitions if each.replica is not None]

    def note(self, partition: FetchedPartition) -> None:
        """A partition may have more than records."""
        self.is_urgent = self.is_urgent or partition.is_urgent
        self.is_plain = self.is_plain and partition.is_plain
        self.has_missing = self.has_missing or partition.is_missing

    def wait_for_disk(self, cold: ColdRead) -> None:
        """Notes a read that is to be done ahead."""
        if self.cold is None:
            self.cold = []
        self.cold.append(cold)

    def use(self, size_bytes: int) -> None:
        """So much is not left any more."""
        self.left = max(self.left - size_bytes, 0)

    def release(self) -> None:
        """Lets go of logs and mapped files, which are not to live as long as the session that read them."""
        for partition in self.partitions:
            partition.records = EMPTY
            partition.replica = None
