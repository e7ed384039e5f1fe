"""The controller as brokers use it: one protocol for a controller in this process and for other processes.

Source: org.apache.kafka.controller.Controller.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.requester import Requester
from coordinator.cluster.security.mutation_quota import MutationQuota
from coordinator.cluster.topics.names import EVERYTHING
from protocol.versions import ANY_VERSION

R = TypeVar("R")


class Asker(NamedTuple):
    """The sender of a request, and its permissions. A controller in this process relies on them, because its caller has
    authorized the client. A controller in another process uses only the requester and the version, and authorizes
    the client itself.
    """

    requester: Requester | None = None
    """The client; None if the broker asks for itself."""
    version: int = ANY_VERSION
    """The version of the request; ANY_VERSION means the newest."""
    broker_id: int | None = None
    """The broker that received the request, which rejects configs of other brokers; None if the controller
    received it.
    """
    describable: Container[str] = EVERYTHING
    """The topics that the client may describe."""
    deletable: Container[str] = EVERYTHING
    """The topics that the client may delete."""
    resolvable: Container[str] = frozenset()
    """The addresses and host names of the request that were resolved."""
    quota: MutationQuota | None = None
    """The client's quota of created and deleted partitions; None if it has none."""

    @property
    def principal(self) -> str:
        """The principal of the client."""
        assert self.requester is not None
        return self.requester.principal


THIS_BROKER: Final = Asker()
"""A broker that sends a request for itself."""


class ActiveController(Protocol):
    """A controller in this process that leads the quorum."""

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Appends records that its caller decided on, and returns once they are committed. Raises KafkaError."""
        ...


class Controller(Protocol):
    """Decides for the cluster."""

    @property
    def active(self) -> ActiveController | None:
        """The controller in this process while it decides; None while a controller in another process does."""
        ...

    @property
    def has_renounced(self) -> bool:
        """True if the controller in this process has failed and no longer decides. Always False for a controller in
        another process.
        """
        ...

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        """Returns the response once the decision is committed. Raises KafkaError if the controller rejects the whole
        request, or if there is no controller.
        """
        ...
