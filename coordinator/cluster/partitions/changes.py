"""Changes of the partitions of a cluster: `partition_change` with what the cluster's state and configs say.

Source: Kafka's ReplicationControlManager.generateLeaderAndIsrUpdates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from coordinator.cluster.partitions.change import Election, ElectionRules, PartitionTarget, change_partition
from coordinator.cluster.topics.placement import Placer
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from protocol.config import INT, JAVA_SPACE
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import Uuid

NOBODY = -1
"""No broker's id."""

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"

Place = tuple[Topic, int]
"""A partition: its topic, and its index there."""


class Departure(NamedTuple):
    """The broker that leaves or comes, by the way in which it does; NOBODY where there is none."""

    removed: int = NOBODY
    """Leaves the in-sync replicas, and may not lead."""
    added: int = NOBODY
    """May lead, though the state does not have it unfenced yet."""
    unclean: int = NOBODY
    """May have lost records: neither in sync nor eligible, and may not lead."""


class PartitionChanges:
    """Makes the records of one decision."""

    def __init__(
        self, image: Image, configs: ConfigRules, offline: Mapping[int, Collection[Uuid]] = MappingProxyType({})
    ) -> None:
        """`offline` has log directories of brokers that have failed, and are in the state as if they had not."""
        self._image = image
        self._offline = offline
        self._configs = configs
        self._placer = Placer(image)
        self._of_topics: dict[str, tuple[int, bool]] = {}

    def change(
        self,
        topic: Topic,
        index: int,
        target: PartitionTarget,
        election: Election | None = None,
        is_active: Callable[[int], bool] | None = None,
    ) -> PartitionChangeRecord | None:
        """The record that makes `target` of the partition; `election` is as the topic's configs say unless given."""
        partition = topic.partitions[index]
        min_isr, unclean = self._of_topic(topic)
        rules = ElectionRules(
            is_acceptable=self._acceptor(partition, target, is_active or self._image.is_active),
            metadata_version=self._image.metadata_version,
            min_isr=min_isr,
            elr_enabled=self._image.elr_enabled,
            election=election or (Election.UNCLEAN if unclean else Election.ONLINE),
            default_directory=self._placer.directory,
        )
        return change_partition(topic.topic_id, index, partition, target, rules)

    def updates(self, places: Iterable[Place], departure: Departure) -> Iterator[PartitionChangeRecord]:
        """Yields the partition changes that a broker's departure or arrival causes: who is in sync, and who leads."""
        removed, added, unclean = departure

        def is_active(broker_id: int) -> bool:
            if broker_id in (removed, unclean):
                return False
            return broker_id == added or self._image.is_active(broker_id)

        gone = {removed, unclean}
        for topic, index in places:
            isr = [one for one in topic.partitions[index].isr if one not in gone]
            record = self.change(
                topic, index, PartitionTarget(isr=isr, unclean_shutdowns=(unclean,)), is_active=is_active
            )
            if record is not None:
                yield record

    def unclean_enabled(self, topic: Topic) -> bool:
        """Whether the topic would rather lose records than be offline."""
        return self._of_topic(topic)[1]

    def _acceptor(
        self, partition: PartitionRegistration, target: PartitionTarget, is_active: Callable[[int], bool]
    ) -> Callable[[int], bool]:
        """A replica that has come to a directory that is online may lead from there on, in the same change: otherwise
        a partition whose only replica has a new directory would wait for another one. Kafka's LeaderAcceptor looks at
        the former directory alone."""

        def is_online(broker_id: int, directory: Uuid | None) -> bool:
            is_failed = directory in self._offline.get(broker_id, ())
            return not is_failed and self._image.brokers[broker_id].has_online(directory)

        def is_acceptable(broker_id: int) -> bool:
            if not is_active(broker_id):
                return False
            to = target.directories.get(broker_id)
            return is_online(broker_id, partition.directory_of(broker_id)) or (
                to is not None and is_online(broker_id, to)
            )

        return is_acceptable

    def _of_topic(self, topic: Topic) -> tuple[int, bool]:
        """The topic's min ISR, no more than it has replicas, and whether its elections may be unclean."""
        options = self._of_topics.get(topic.name)
        if options is None:
            own = self._image.topic_configs(topic.name)
            min_isr = INT.read(self._configs.effective_topic_config(MIN_ISR, own, self._image).strip(JAVA_SPACE))
            unclean = self._configs.effective_topic_config(UNCLEAN, own, self._image) == "true"
            options = self._of_topics[topic.name] = min(min_isr, topic.replication_factor), unclean
        return options


def in_sync(image: Image, broker_id: int) -> list[Place]:
    """The partitions in whose ISR the broker is."""
    return _places(image, image.by_broker.in_sync(broker_id))


def eligible(image: Image, broker_id: int) -> list[Place]:
    """The partitions that the broker is an eligible leader replica of."""
    return _places(image, image.by_broker.eligible(broker_id))


def leaderless(image: Image) -> list[Place]:
    """The partitions that nobody leads."""
    return _places(image, image.by_broker.leaderless())


def leads_any(image: Image, broker_id: int) -> bool:
    """Whether the broker leads a partition."""
    return image.by_broker.leads_any(broker_id)


def _places(image: Image, named: Iterable[tuple[Uuid, int]]) -> list[Place]:
    topics = ((image.topic_by_id(topic_id), index) for topic_id, index in named)
    return [(topic, index) for topic, index in topics if topic is not None]
