"""The table of APIs of a broker whose controllers are elsewhere: what they answer is forwarded to them as it came.

Source: Kafka's KafkaApis.forwardToController.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.metadata.forwarding import FORWARDED, Requester
from broker.requests.api import Api, Apis
from broker.requests.call import Call


class Forwarder(Protocol):
    """Who reaches the controllers."""

    async def forward(self, request: object, version: int, requester: Requester) -> bytes:
        """The body of the answer to a client's request. Raises KafkaError."""
        ...


class ForwardingApis(Apis):
    """The same APIs in the same versions."""

    def __init__(self, package: str, names: Sequence[str], controllers: Forwarder) -> None:
        """The modules are `package`'s, and have the names of their APIs."""
        super().__init__(package, names)
        self._controllers = controllers

    def find(self, key: int) -> Api | None:
        """The row of an API; None when it is not served."""
        known = key in self._found
        api = super().find(key)
        if api is not None and not known and api.key in FORWARDED:
            api = self._found[key] = api._replace(handle=self._forward)
        return api

    async def _forward(self, call: Call[object]) -> bytes:
        context = call.context
        principal = context.principal
        requester = Requester(principal.kind, principal.name, context.client_id, context.connection.ip)
        return await self._controllers.forward(call.request, call.version, requester)
