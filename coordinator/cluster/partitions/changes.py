"""Computes changes of partitions by `change_partition`, with the rules from the cluster's state and configs.

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
"""Not the id of any broker."""

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"

Place = tuple[Topic, int]
"""A partition: its topic, and its index there."""


class Departure(NamedTuple):
    """The broker that leaves or arrives, in one of the fields; the other fields are NOBODY."""

    removed: int = NOBODY
    """The broker that leaves the ISRs, and may not lead."""
    added: int = NOBODY
    """The broker that may lead, although the state doesn't show it as unfenced yet."""
    unclean: int = NOBODY
    """The broker that may have lost records: it is neither in sync nor eligible, and may not lead."""


class PartitionChanges:
    """Computes the records of one decision."""

    def __init__(
        self, image: Image, configs: ConfigRules, offline: Mapping[int, Collection[Uuid]] = MappingProxyType({})
    ) -> None:
        """`offline` has the log directories of brokers that have failed but are still online in the state."""
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
        """Returns the record that brings the partition to `target`. The topic's configs choose the kind of election
        unless `election` is given.
        """
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
        """Yields the changes of ISRs and leaders that a broker's departure or arrival causes."""
        removed, added, unclean = departure

        def is_active(broker_id: int) -> bool:
            if broker_id in (removed, unclean):
                return False
            return broker_id == added or self._image.is_active(broker_id)

        gone = {removed, unclean}
        for topic, index in places:
            isr = [replica for replica in topic.partitions[index].isr if replica not in gone]
            record = self.change(
                topic, index, PartitionTarget(isr=isr, unclean_shutdowns=(unclean,)), is_active=is_active
            )
            if record is not None:
                yield record

    def unclean_enabled(self, topic: Topic) -> bool:
        """True if the topic allows unclean leader elections."""
        return self._of_topic(topic)[1]

    def _acceptor(
        self, partition: PartitionRegistration, target: PartitionTarget, is_active: Callable[[int], bool]
    ) -> Callable[[int], bool]:
        """Returns the function that decides which brokers may lead. A replica that moves to an online directory may
        lead in the same change; otherwise a partition whose only replica has a new directory would have to wait for
        another change. Kafka's LeaderAcceptor checks only the old directory.
        """

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
        """Returns the topic's min ISR, limited to its number of replicas, and True if its elections may be unclean."""
        options = self._of_topics.get(topic.name)
        if options is None:
            own = self._image.topic_configs(topic.name)
            min_isr = INT.read(self._configs.effective_topic_config(MIN_ISR, own, self._image).strip(JAVA_SPACE))
            unclean = self._configs.effective_topic_config(UNCLEAN, own, self._image) == "true"
            options = self._of_topics[topic.name] = min(min_isr, topic.replication_factor), unclean
        return options


def in_sync(image: Image, broker_id: int) -> list[Place]:
    """Returns the partitions whose ISR contains the broker."""
    return _places(image, image.by_broker.in_sync(broker_id))


def eligible(image: Image, broker_id: int) -> list[Place]:
    """Returns the partitions that have the broker as an eligible leader replica."""
    return _places(image, image.by_broker.eligible(broker_id))


def leaderless(image: Image) -> list[Place]:
    """Returns the partitions without a leader."""
    return _places(image, image.by_broker.leaderless())


def leads_any(image: Image, broker_id: int) -> bool:
    """True if the broker leads a partition."""
    return image.by_broker.leads_any(broker_id)


def _places(image: Image, named: Iterable[tuple[Uuid, int]]) -> list[Place]:
    topics = ((image.topic_by_id(topic_id), index) for topic_id, index in named)
    return [(topic, index) for topic, index in topics if topic is not None]
