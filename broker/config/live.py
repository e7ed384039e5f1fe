"""The broker's current configuration, for code that reads it while clients change it."""

from __future__ import annotations

from broker.config.broker_config import BrokerConfig
from broker.config.layers import Layers


class LiveConfig:
    """Holds the current layers of a broker's configuration, which a change of a dynamic option replaces as a whole."""

    __slots__ = ("layers",)

    def __init__(self, layers: Layers) -> None:
        self.layers = layers

    @property
    def effective(self) -> BrokerConfig:
        """The current options."""
        return self.layers.effective
