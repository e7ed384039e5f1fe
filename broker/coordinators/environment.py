"""The parts of a broker that its coordinators use, all from layers below them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from broker.coordinators.neighbours import Neighbours
from broker.replica.replicas import Replicas
from broker.replica.topics import TopicCreator
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.topics.topic import NO_LEADER
from protocol.types import TopicPartition


class Environment(NamedTuple):
    """Time, options, the cluster, this broker's replicas, and access to new topics and other brokers."""

    clock: Clock
    live_config: LiveConfig
    loader: MetadataLoader
    replicas: Replicas
    topics: TopicCreator
    neighbours: Callable[[str], Neighbours]
    """Returns separate connections to the other brokers, for a purpose."""

    @property
    def config(self) -> BrokerConfig:
        """The current options."""
        return self.live_config.layers.effective

    @property
    def image(self) -> Image:
        """The metadata image, with all committed records that this broker has."""
        return self.loader.image

    def leader_elsewhere(self, name: TopicPartition) -> int | None:
        """Returns the other broker that leads a partition; None if this broker leads it, it has no leader, or it
        doesn't exist."""
        partition = self.image.partition(name)
        leads_elsewhere = partition is not None and partition.leader not in (NO_LEADER, self.config.node_id)
        return partition.leader if partition is not None and leads_elsewhere else None
