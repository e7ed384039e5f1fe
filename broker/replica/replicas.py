"""Replicas: every partition that this broker has, by name and by topic id; it follows the registry.

Source: kafka.server.ReplicaManager, as far as one node needs it.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.replica.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.primitives import uvarint
from protocol.types import NO_UUID, TopicPartition, Uuid


def compact(topic: str) -> bytes:
    """A name as flexible versions spell it; only names of up to 126 bytes are looked up so."""
    return uvarint(len(topic) + 1) + topic.encode()


class Replicas:
    """The partitions that are here, ready to be read and appended to."""

    def __init__(self) -> None:
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._names: dict[Uuid, str] = {}
        self.by_key: dict[bytes, dict[int, Partition]] = {}
        """The partitions of a topic by its id, and by its name behind a length byte, as flexible requests have them."""

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._partitions.values():
            yield from partitions.values()

    def add(self, partition: Partition) -> None:
        topic, index = partition.name
        partitions = self._partitions.setdefault(topic, {})
        partitions[index] = partition
        self.by_key[compact(topic)] = partitions
        if partition.topic_id != NO_UUID:
            self._names[partition.topic_id] = topic
            self.by_key[partition.topic_id] = partitions

    def remove(self, name: TopicPartition) -> Partition | None:
        """Forgets a partition; whoever waits for it is told."""
        partitions = self._partitions.get(name.topic, {})
        partition = partitions.pop(name.partition, None)
        if not partitions and self._partitions.pop(name.topic, None) is not None and partition is not None:
            self._names.pop(partition.topic_id, None)
            self.by_key.pop(partition.topic_id, None)
            self.by_key.pop(compact(name.topic), None)
        if partition is not None:
            partition.wake_all()
        return partition

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic that is here, by its id."""
        return self._names.get(topic_id)

    def topic(self, topic: str) -> dict[int, Partition]:
        """The partitions of a topic that are here, by number."""
        return self._partitions.get(topic, {})

    def partition(self, topic: str | None, index: int) -> Partition:
        """The partition; `topic` is None where a topic id led nowhere. Raises UNKNOWN_TOPIC_ID or
        UNKNOWN_TOPIC_OR_PARTITION."""
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        try:
            return self._partitions[topic][index]
        except KeyError:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
