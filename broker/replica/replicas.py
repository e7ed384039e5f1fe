"""Replicas: every partition that has a replica on this broker, by name and by topic id. Source: the partitions of
kafka.server.ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker.replica.partition import Partition
from broker.replica.traffic import Traffic
from coordinator.cluster.image import Image
from coordinator.cluster.topics import names
from coordinator.cluster.topics.topic import NO_LEADER
from coordinator.replication.roles import NO_EPOCH, LeaderMoved
from protocol.errors import ErrorCode, KafkaError
from protocol.primitives import uvarint
from protocol.types import NO_UUID, TopicPartition, Uuid


def compact(topic: str) -> bytes:
    """Returns a topic name as flexible versions encode it, with its length in front."""
    name = topic.encode()
    return uvarint(len(name) + 1) + name


class Replicas:
    """The partitions that have a replica on this broker, ready for reads and appends."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._led: dict[str, dict[int, Partition]] = {}
        """The partitions that this broker leads."""
        self._names: dict[Uuid, str] = {}
        self._ids: dict[str, set[Uuid]] = {}
        self._absent: dict[str, dict[int, ErrorCode]] = {}
        """Partitions whose log doesn't exist here yet, or no longer, with the error for their requests."""
        self._subscribers: list[Callable[[Partition], None]] = []
        self._role_subscribers: list[Callable[[Partition], None]] = []
        self.traffic = Traffic()
        self.by_key: dict[bytes, dict[int, Partition]] = {}
        """The partitions that this broker leads, of topics that clients write to: by topic id, and by topic name as
        `compact` encodes it. The fast paths serve only these partitions.
        """

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._partitions.values():
            yield from partitions.values()

    def subscribe_to_roles(self, subscriber: Callable[[Partition], None]) -> None:
        """Calls `subscriber` with each partition whenever its role changes, and when it is removed."""
        self._role_subscribers.append(subscriber)

    def subscribe(self, subscriber: Callable[[Partition], None]) -> None:
        """Calls `subscriber` with every partition that is added from now on."""
        self._subscribers.append(subscriber)

    def add(self, partition: Partition) -> None:
        """Adds a partition whose log is open."""
        self._not_absent(partition.name)
        self._of(partition.name.topic, partition.topic_id)[partition.name.partition] = partition
        partition.on_role = self._role_changed
        partition.traffic = self.traffic.topic(partition.name.topic)
        self._role_changed(partition)
        for subscriber in self._subscribers:
            subscriber(partition)

    def _of(self, topic: str, topic_id: Uuid) -> dict[int, Partition]:
        """Returns the dict of a topic's partitions; creates it if the topic had no partition here."""
        partitions, led = self._partitions.setdefault(topic, {}), self._led.setdefault(topic, {})
        by_clients = not names.is_internal(topic)
        if by_clients:
            self.by_key[compact(topic)] = led
        if topic_id != NO_UUID:
            self._names[topic_id] = topic
            self._ids.setdefault(topic, set()).add(topic_id)
            if by_clients:
                self.by_key[topic_id] = led
        return partitions

    def _role_changed(self, partition: Partition) -> None:
        topic, index = partition.name
        if self._partitions.get(topic, {}).get(index) is partition:
            if partition.leads:
                self._led[topic][index] = partition
            else:
                self._led[topic].pop(index, None)
            self._publish_role(partition)

    def _publish_role(self, partition: Partition) -> None:
        for subscriber in self._role_subscribers:
            subscriber(partition)

    def remove(self, name: TopicPartition, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> Partition | None:
        """Removes a partition that was deleted, or no longer has a replica here. Requests that wait for it fail with
        the error `code`.
        """
        self._not_absent(name)
        partitions = self._partitions.get(name.topic, {})
        partition = partitions.pop(name.partition, None)
        self._led.get(name.topic, {}).pop(name.partition, None)
        if not partitions and name.topic not in self._absent:
            self._forget(name.topic)
        if partition is not None:
            partition.retire(code)
            self._publish_role(partition)
        return partition

    def _forget(self, topic: str) -> None:
        self._partitions.pop(topic, None)
        self._led.pop(topic, None)
        self.traffic.forget(topic)
        self.by_key.pop(compact(topic), None)
        for topic_id in self._ids.pop(topic, ()):
            del self._names[topic_id]
            self.by_key.pop(topic_id, None)

    def set_offline(self, name: TopicPartition, topic_id: Uuid) -> None:
        """Marks a partition whose log directory has failed, and fails the requests that wait for it."""
        self._set_absent(name, topic_id, ErrorCode.KAFKA_STORAGE_ERROR)

    def set_pending(self, name: TopicPartition, topic_id: Uuid) -> None:
        """Marks a new partition whose log isn't created yet."""
        self._set_absent(name, topic_id, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _set_absent(self, name: TopicPartition, topic_id: Uuid, code: ErrorCode) -> None:
        self._absent.setdefault(name.topic, {})[name.partition] = code
        partition = self._of(name.topic, topic_id).pop(name.partition, None)
        self._led[name.topic].pop(name.partition, None)
        if partition is not None:
            partition.retire(code)
            self._publish_role(partition)

    def _not_absent(self, name: TopicPartition) -> None:
        absent = self._absent.get(name.topic)
        if absent is not None:
            absent.pop(name.partition, None)
            if not absent:
                del self._absent[name.topic]

    def is_offline(self, name: TopicPartition) -> bool:
        """True if the partition has a replica here, but the directory of its log has failed."""
        return self._absent.get(name.topic, {}).get(name.partition) is ErrorCode.KAFKA_STORAGE_ERROR

    def is_absent(self, name: TopicPartition) -> bool:
        """True if the partition has a replica here, but no log."""
        return name.partition in self._absent.get(name.topic, ())

    def name_of(self, topic_id: Uuid) -> str | None:
        """Returns the name of a topic by its id; None if no topic has it."""
        name = self._names.get(topic_id)
        if name is not None:
            return name
        elsewhere = self._image.topic_by_id(topic_id)
        return None if elsewhere is None else elsewhere.name

    def count_offline(self) -> int:
        """Returns the number of partitions here whose log directory has failed."""
        return sum(
            code is ErrorCode.KAFKA_STORAGE_ERROR for absent in self._absent.values() for code in absent.values()
        )

    def topic_names(self) -> list[str]:
        """Returns the topics with partitions here."""
        return list(self._partitions)

    def topic(self, topic: str) -> dict[int, Partition]:
        """Returns a topic's partitions here, by index."""
        return self._partitions.get(topic, {})

    def partition(self, topic: str | None, index: int) -> Partition:
        """Returns this broker's replica of a partition; `topic` is None if no topic has the id of the request. Raises
        UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, and NOT_LEADER_OR_FOLLOWER if its log isn't
        created yet, or only other brokers have replicas."""
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        try:
            return self._partitions[topic][index]
        except KeyError:
            raise self._not_here(topic, index) from None

    def _not_here(self, topic: str, index: int) -> KafkaError:
        code = self._absent.get(topic, {}).get(index)
        assigned = self._image.partition(TopicPartition(topic, index))
        if code is ErrorCode.KAFKA_STORAGE_ERROR or assigned is None:
            return KafkaError(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        message = f"{topic}-{index} is led by broker {assigned.leader}"
        return LeaderMoved(ErrorCode.NOT_LEADER_OR_FOLLOWER, message, assigned.leader, assigned.leader_epoch)

    def current_leader(self, topic: str, index: int) -> tuple[int, int]:
        """Returns the broker that leads a partition, and the leader epoch; -1 for both if the partition is unknown
        here."""
        partition = self._partitions.get(topic, {}).get(index)
        if partition is not None:
            return partition.role.leader_id, partition.leader_epoch
        assigned = self._image.partition(TopicPartition(topic, index))
        return (NO_LEADER, NO_EPOCH) if assigned is None else (assigned.leader, assigned.leader_epoch)

    def leader(self, topic: str | None, index: int, current_leader_epoch: int = NO_EPOCH) -> Partition:
        """Returns a partition that this broker leads, in the epoch that the client expects. Raises the errors of
        `partition`, and LeaderMoved: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
        """
        partition = self.partition(topic, index)
        partition.check_leads(current_leader_epoch)
        return partition
