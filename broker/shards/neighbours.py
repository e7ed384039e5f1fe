"""Connections of coordinators to the other brokers: by node id, on the inter-broker listener.

Light to import: a single broker never connects to others, and doesn't import the code for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.live import LiveConfig
from coordinator.cluster.changes import BrokerChanged, Delta
from coordinator.cluster.loader import MetadataLoader

if TYPE_CHECKING:
    from broker.peers import Address, Peers, Settings

R = TypeVar("R")


class Neighbours(Protocol):
    """Sends requests to other brokers, each once."""

    async def send(self, broker_id: int, request: object, response: type[R]) -> R:
        """Returns the answer, of class `response`. Raises PeerError, ProtocolError."""
        ...

    def stop(self) -> None:
        """Closes all connections for good; unanswered requests end with ConnectionClosed."""
        ...


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
            from protocol.peer_errors import ConnectionClosed

            raise ConnectionClosed(f"broker {broker_id}", "this broker is stopping")
        timeout_ms = max(self._config.effective.request_timeout_ms, 1)
        return await self._reached().node(broker_id).send(request, response, timeout_ms=timeout_ms, max_dials=1)

    def stop(self) -> None:
        self._is_stopped = True
        if self._peers is not None:
            self._peers.place({})

    def _reached(self) -> Peers:
        if self._peers is None:
            from broker.peers import Peers

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
        from broker.peers import Address

        listener = self._config.effective.inter_broker_listener
        return {
            broker.broker_id: Address(endpoint.host, endpoint.port)
            for broker in self._loader.image.brokers.values()
            if not broker.fenced and (endpoint := broker.endpoint(listener)) is not None
        }
