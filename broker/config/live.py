"""The configuration in force, for those who look at it while it changes."""

from __future__ import annotations

from broker.config.broker_config import BrokerConfig
from broker.config.layers import Layers


class LiveConfig:
    """One for a broker. Its layers are replaced as a whole when a dynamic option changes."""

    __slots__ = ("layers",)

    def __init__(self, layers: Layers) -> None:
        self.layers = layers

    @property
    def effective(self) -> BrokerConfig:
        """The options as they are now."""
        return self.layers.effective
