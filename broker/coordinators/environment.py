"""The broker as its coordinators see it: nothing that stands above them."""

from __future__ import annotations

from typing import NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from broker.replica.replicas import Replicas
from broker.replica.topics import TopicCreator
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader


class Environment(NamedTuple):
    """Time, options, the cluster, this broker's replicas, and the way to new topics."""

    clock: Clock
    live_config: LiveConfig
    loader: MetadataLoader
    replicas: Replicas
    topics: TopicCreator

    @property
    def config(self) -> BrokerConfig:
        """The options as they are now."""
        return self.live_config.layers.effective

    @property
    def image(self) -> Image:
        """The cluster, as of the last committed record that is here."""
        return self.loader.image
