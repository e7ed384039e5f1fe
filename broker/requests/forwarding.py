"""The table of APIs of a broker whose controllers are elsewhere: it forwards requests to them as they came.

Source: Kafka's KafkaApis.forwardToController.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.exchange.authorisation import NOTHING
from broker.metadata.forwarding import FORWARDED, Requester
from broker.requests.api import Api, Apis
from broker.requests.call import Call


class Forwarder(Protocol):
    """Sends requests to the active controller."""

    async def forward(self, request: object, version: int, requester: Requester) -> bytes:
        """Returns the body of the response to a client's request. Raises KafkaError."""
        ...


class ForwardingApis(Apis):
    """The same APIs in the same versions, some of them forwarded."""

    def __init__(self, package: str, names: Sequence[str], controllers: Forwarder) -> None:
        """`names` are those of APIs, and of the modules of `package` that have their rows."""
        super().__init__(package, names)
        self._controllers = controllers

    def find(self, key: int) -> Api | None:
        """Returns the row of an API; None when it is not served."""
        is_imported = key in self._rows
        api = super().find(key)
        if api is not None and not is_imported and api.key in FORWARDED:
            api = self._rows[key] = api._replace(handle=self._forward, requires=NOTHING, is_forwarded=True)
        return api

    async def _forward(self, call: Call[object]) -> bytes:
        context = call.context
        principal = context.principal
        requester = Requester(principal.kind, principal.name, context.client_id, context.connection.ip)
        return await self._controllers.forward(call.request, call.version, requester)
