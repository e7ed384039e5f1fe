"""The parts of a broker that its coordinators use, all from layers below them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from broker.replica.replicas import Replicas
from broker.replica.topics import TopicCreator
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.topics.topic import NO_LEADER
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.shards.anywhere import Anywhere


class Environment(NamedTuple):
    """Time, options, the cluster, this broker's replicas, and access to new topics and other brokers."""

    clock: Clock
    live_config: LiveConfig
    loader: MetadataLoader
    replicas: Replicas
    topics: TopicCreator
    anywhere: Callable[[], Anywhere]
    """Returns the client for partitions that other brokers lead, made at its first use."""

    @property
    def config(self) -> BrokerConfig:
        """The current options."""
        return self.live_config.effective

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
