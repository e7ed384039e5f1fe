"""The controller as brokers see it: one protocol, whether it is in this process or elsewhere.

Source: org.apache.kafka.controller.Controller.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple, Protocol, TypeVar

from coordinator.cluster.requester import Requester
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.names import EVERYTHING
from protocol.schema import ANY_VERSION

R = TypeVar("R")


class Asker(NamedTuple):
    """The sender of a request, and what it is permitted. A controller in this process relies on it: the caller has
    authorized the client. A controller elsewhere reads the requester and the version only, and authorizes itself."""

    requester: Requester | None = None
    """The client; None if the broker asks for itself."""
    version: int = ANY_VERSION
    """The version of the request; ANY_VERSION stands for the newest."""
    broker_id: int | None = None
    """The broker that the client asked, which alters no other broker's configs; None if the client asked the
    controller."""
    describable: Container[str] = EVERYTHING
    """The topics that the client may describe."""
    deletable: Container[str] = EVERYTHING
    """The topics that the client may delete."""
    resolvable: Container[str] = frozenset()
    """The addresses and hosts in the request that exist."""
    charge: Charge = unlimited
    """Takes created and deleted partitions out of the client's quota."""

    @property
    def principal(self) -> str:
        """The principal of the client."""
        assert self.requester is not None
        return self.requester.principal


THIS_BROKER: Final = Asker()
"""A broker that asks for itself."""


class Controller(Protocol):
    """Decides for the cluster."""

    @property
    def has_renounced(self) -> bool:
        """True if the controller in this process no longer decides: its answers are not the cluster's. False for a
        controller elsewhere, which answers for itself."""
        ...

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        """Returns the response once what was decided is committed. Raises KafkaError if the controller rejects the
        whole request, or if there is no controller."""
        ...
