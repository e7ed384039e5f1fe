"""Neighbours over the network. A broker that is alone never connects to others, and doesn't import this module."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from client.address import Address
from client.errors import ConnectionClosed
from client.pool import Peers
from client.settings import Settings
from coordinator.cluster.changes import BrokerChanged, Delta
from coordinator.cluster.loader import MetadataLoader

R = TypeVar("R")


class PeerNeighbours:
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
        self._settings = settings
        self._loader = loader
        self._config = config
        self._clock = clock
        self._purpose = purpose
        self._peers: Peers | None = None
        self._is_stopped = False

    async def send(self, broker_id: int, request: object, response: type[R]) -> R:
        if self._is_stopped:
            raise ConnectionClosed(f"broker {broker_id}", "this broker is stopping")
        timeout_ms = max(self._config.effective.request_timeout_ms, 1)
        return await self._reached().node(broker_id).send(request, response, timeout_ms=timeout_ms, max_dials=1)

    def stop(self) -> None:
        self._is_stopped = True
        if self._peers is not None:
            self._peers.place({})

    def _reached(self) -> Peers:
        if self._peers is None:
            client_id = f"broker-{self._config.effective.node_id}-{self._purpose}"
            self._peers = Peers(self._settings(self._config.effective, client_id), self._clock, random.random)
            self._peers.place(self._addresses())
            self._loader.subscribe(self._changed)
        return self._peers

    def _changed(self, delta: Delta) -> None:
        is_concerned = any(isinstance(change, BrokerChanged) for change in delta.changes)
        if is_concerned and self._peers is not None and not self._is_stopped:
            self._peers.place(self._addresses())

    def _addresses(self) -> dict[int, Address]:
        listener = self._config.effective.inter_broker_listener
        return {
            broker.broker_id: Address(endpoint.host, endpoint.port)
            for broker in self._loader.image.brokers.values()
            if not broker.fenced and (endpoint := broker.endpoint(listener)) is not None
        }
