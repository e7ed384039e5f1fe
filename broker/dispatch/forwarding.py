"""The table of APIs of a broker whose controllers are elsewhere: it forwards requests to them unchanged. Only the
changes of configs that it rejects itself are not forwarded. Source: Kafka's KafkaApis.forwardToController,
handleAlterConfigsRequest, ConfigAdminManager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from struct import Struct
from typing import Final, Protocol, TypeAlias, TypeVar

from broker.dispatch.api import Api, Apis, Handle, Here
from broker.dispatch.call import Call
from broker.dispatch.config_access import ConfigsRequest
from broker.dispatch.parts import PART_ENTRIES
from broker.metadata.forwarding import FORWARDED
from broker.request.authorisation import inside
from coordinator.cluster.requester import Requester
from protocol.api_key import ApiKey
from protocol.codec import decode


class Forwarder(Protocol):
    """Sends requests to the active controller."""

    async def forward(self, request: object, version: int, requester: Requester) -> bytes:
        """Returns the body of the response to a client's request. Raises KafkaError."""
        ...


R = TypeVar("R")

OF_CONFIGS: Final = frozenset({ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})

BY_CONTROLLER: Final = inside("by the controller")

THROTTLE_TIME: Final = Struct(">i")

RefusedHere: TypeAlias = "Callable[[object], Awaitable[Mapping[int, object]]]"
"""Returns the answers for the resources of a config change that this broker rejects, by their index in the request."""


def after(here: Here | None, handle: Handle) -> Handle:
    """Returns a handler that does the broker's own part first, if the API has one."""
    return handle if here is None else lambda call: here(call, handle)


class ForwardingApis(Apis):
    """The table of the same APIs in the same versions, some of which are forwarded."""

    def __init__(self, package: str, names: Sequence[str], controllers: Forwarder, refused_here: RefusedHere) -> None:
        """`names` are the names of APIs, and of the modules in `package` that have their rows."""
        super().__init__(package, names)
        self._controllers = controllers
        self._refused_here = refused_here

    def find(self, key: int) -> Api | None:
        """Returns the row of an API; None when it is not served."""
        is_imported = key in self._rows
        api = super().find(key)
        if api is not None and not is_imported and api.key in FORWARDED:
            handle = self._forward_configs if api.key in OF_CONFIGS else self._forward
            api = self._rows[key] = api._replace(
                handle=after(api.here, handle), authorize=BY_CONTROLLER, is_forwarded=True
            )
        return api

    async def _forward(self, call: Call[object]) -> bytes:
        return await self._send(call, call.request)

    async def _send(self, call: Call[R], request: object) -> bytes:
        """Returns the controller's answer. If the controller throttles the client, this broker pauses the
        connection."""
        context = call.context
        body = await self._controllers.forward(request, call.version, context.requester)
        if call.api.begins_with_throttle_time(call.version):
            (context.throttle_ms,) = THROTTLE_TIME.unpack_from(body)
        return body

    async def _forward_configs(self, call: Call[ConfigsRequest]) -> object:
        """Returns the controller's answers, and this broker's answers for the resources that it rejects, in the order
        of the request."""
        request = call.request
        own: dict[int, object] = {}
        turns = call.turns()
        for start in range(0, len(request.resources), PART_ENTRIES):
            await turns.next()
            part = copy(request)
            part.resources = request.resources[start : start + PART_ENTRIES]
            refused = await self._refused_here(part)
            own.update((start + index, answer) for index, answer in refused.items())
        if not own:
            return await self._send(call, request)
        answer = call.api.response(responses=[])
        others = [one for index, one in enumerate(request.resources) if index not in own]
        if others:
            rest = copy(request)
            rest.resources = others
            answer, _ = decode(call.api.response, call.version, await self._send(call, rest))
        answered = {(one.resource_type, one.resource_name): one for one in answer.responses}
        answer.responses = [
            own[index] if index in own else answered[one.resource_type, one.resource_name]
            for index, one in enumerate(request.resources)
        ]
        return answer
