"""Replicas: every partition that this broker has, by name and by topic id; it follows the registry.

Source: kafka.server.ReplicaManager, as far as one node needs it.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.replica.partition import Partition
from coordinator.cluster import names
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
        self._offline: set[TopicPartition] = set()
        self.by_key: dict[bytes, dict[int, Partition]] = {}
        """The partitions of a topic that clients write to, by its id, and by its name behind a length byte, as flexible
        requests have them."""

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._partitions.values():
            yield from partitions.values()

    def add(self, partition: Partition) -> None:
        self._offline.discard(partition.name)
        self._of(partition.name.topic, partition.topic_id)[partition.name.partition] = partition

    def _of(self, topic: str, topic_id: Uuid) -> dict[int, Partition]:
        """The partitions of a topic that is, from now on, here."""
        partitions = self._partitions.setdefault(topic, {})
        by_clients = not names.is_internal(topic)
        if by_clients:
            self.by_key[compact(topic)] = partitions
        if topic_id != NO_UUID:
            self._names[topic_id] = topic
            if by_clients:
                self.by_key[topic_id] = partitions
        return partitions

    def remove(self, name: TopicPartition) -> Partition | None:
        """Forgets a partition; whoever waits for it is told."""
        self._offline.discard(name)
        partitions = self._partitions.get(name.topic, {})
        partition = partitions.pop(name.partition, None)
        if not partitions and not any(offline.topic == name.topic for offline in self._offline):
            self._forget(name.topic)
        if partition is not None:
            partition.wake_all()
        return partition

    def _forget(self, topic: str) -> None:
        self._partitions.pop(topic, None)
        self.by_key.pop(compact(topic), None)
        for topic_id in [topic_id for topic_id, name in self._names.items() if name == topic]:
            del self._names[topic_id]
            self.by_key.pop(topic_id, None)

    def set_offline(self, name: TopicPartition, topic_id: Uuid) -> None:
        """The partition is here, but the directory of its log has failed; whoever waits for it is told."""
        self._offline.add(name)
        partition = self._of(name.topic, topic_id).pop(name.partition, None)
        if partition is not None:
            partition.wake_all()

    def is_offline(self, name: TopicPartition) -> bool:
        """Whether the directory of the partition's log has failed."""
        return name in self._offline

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic that is here, by its id."""
        return self._names.get(topic_id)

    def topic(self, topic: str) -> dict[int, Partition]:
        """The partitions of a topic that are here, by number."""
        return self._partitions.get(topic, {})

    def partition(self, topic: str | None, index: int) -> Partition:
        """The partition; `topic` is None where a topic id led nowhere. Raises UNKNOWN_TOPIC_ID,
        UNKNOWN_TOPIC_OR_PARTITION, or KAFKA_STORAGE_ERROR."""
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        try:
            return self._partitions[topic][index]
        except KeyError:
            offline = TopicPartition(topic, index) in self._offline
            code = ErrorCode.KAFKA_STORAGE_ERROR if offline else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code) from None
