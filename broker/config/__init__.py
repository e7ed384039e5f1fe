"""The broker's configuration: its options by area, where they come from, how clients see and change them."""

from broker.config.broker_config import BrokerConfig

__all__ = ["BrokerConfig"]
