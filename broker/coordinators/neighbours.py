"""Connections of coordinators to the other brokers: by node id, on the inter-broker listener."""

from __future__ import annotations

from typing import Protocol, TypeVar

R = TypeVar("R")


class Neighbours(Protocol):
    """Sends requests to other brokers, each once."""

    async def send(self, broker_id: int, request: object, response: type[R]) -> R:
        """Returns the answer, of class `response`. Raises PeerError, ProtocolError."""
        ...

    def stop(self) -> None:
        """Closes all connections for good; unanswered requests end with ConnectionClosed."""
        ...
