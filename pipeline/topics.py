"""Topics and partitions, as values."""

from __future__ import annotations

from typing import NamedTuple


class PartitionName(NamedTuple):
    """A partition of a topic, as a key."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicDescription(NamedTuple):
    """A topic as it is now. Its id distinguishes it from an earlier topic of the same name."""

    name: str
    id: str
    partitions: tuple[int, ...]

    def partition_keys(self) -> list[PartitionName]:
        return [PartitionName(self.name, number) for number in self.partitions]
