"""The settings with which this node connects to other nodes: those of the security protocol of their listener.

Source: org.apache.kafka.common.network.ChannelBuilders.clientChannelBuilder, with a broker's own options.
"""

from __future__ import annotations

import os

from broker.config import BrokerConfig
from broker.config.listener_security import PeerListener, controller_listener, inter_broker_listener, login_of
from broker.security.certificates import client_context
from client.authenticator import authenticator
from client.settings import Settings


def broker_settings(config: BrokerConfig, client_id: str) -> Settings:
    """Returns the settings of connections to other brokers. Raises ConfigError."""
    return _settings(config, inter_broker_listener(config))._replace(client_id=client_id)


def controller_settings(config: BrokerConfig) -> Settings:
    """Returns the settings of connections to controllers. Raises ConfigError."""
    return _settings(config, controller_listener(config))


def _settings(config: BrokerConfig, listener: PeerListener) -> Settings:
    settings = Settings()
    if listener.is_tls:
        settings = settings._replace(tls=client_context(config.options_of(listener.name)))
    if listener.is_sasl:
        name, password = login_of(config, listener)
        settings = settings._replace(authenticators=(authenticator(listener.mechanism, name, password, os.urandom),))
    return settings
