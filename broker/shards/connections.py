"""Connections to the other brokers, by node id, on the inter-broker listener.

A broker that is alone never connects to others, and doesn't import this module.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from client.address import Address
from client.pool import Peers
from client.settings import Settings
from coordinator.cluster.changes import BrokerChanged, Delta
from coordinator.cluster.loader import MetadataLoader

M = TypeVar("M")


class Connections:
    """A connection to each broker, made when it is needed. Answers on a connection wait for each other, so each kind of
    traffic has its own connections. A broker that is fenced, or removed from the metadata, loses its connection, so
    that a request to it looks for another leader before its timeout."""

    def __init__(
        self,
        settings: Callable[[BrokerConfig, str], Settings],
        loader: MetadataLoader,
        config: LiveConfig,
        clock: Clock,
        purpose: str,
    ) -> None:
        """`settings` returns the settings of connections for a client id. `purpose` is the end of the client id, as in
        broker-1-txn-marker-sender."""
        self._loader = loader
        self._config = config
        client_id = f"broker-{config.effective.node_id}-{purpose}"
        self._peers = Peers(settings(config.effective, client_id), clock, random.random)
        self._is_stopped = False
        self._peers.place(self._addresses())
        loader.subscribe(self._changed)

    async def send(self, broker_id: int, request: object, response: type[M]) -> M:
        """Sends a request once. Returns the answer, of class `response`. Raises PeerError, ProtocolError."""
        timeout_ms = max(self._config.effective.request_timeout_ms, 1)
        return await self._peers.node(broker_id).send(request, response, timeout_ms=timeout_ms, max_dials=1)

    def stop(self) -> None:
        """Closes all connections for good; unanswered requests end with ConnectionClosed."""
        self._is_stopped = True
        self._peers.place({})

    def _changed(self, delta: Delta) -> None:
        is_concerned = any(isinstance(change, BrokerChanged) for change in delta.changes)
        if is_concerned and not self._is_stopped:
            self._peers.place(self._addresses())

    def _addresses(self) -> dict[int, Address]:
        listener = self._config.effective.inter_broker_listener
        return {
            broker.broker_id: Address(endpoint.host, endpoint.port)
            for broker in self._loader.image.brokers.values()
            if not broker.fenced and (endpoint := broker.endpoint(listener)) is not None
        }
