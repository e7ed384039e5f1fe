"""Lets the broker pretend to be older: it advertises fewer APIs and versions, and rejects the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.request.context import AnswerBuffers
from broker.request.pending import Answer, Running
from programs.control.actions import Exchange
from programs.control.frames import Awaited, buffers_of, response_in, with_version
from programs.control.request_view import RequestView, name_of_api
from protocol.api_key import ApiKey
from protocol.errors import ProtocolError
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

NOT_SERVED: Final = 0x7FFF
"""A version of ApiVersions that no broker supports: the answer is that for a client that is too new."""
HIDDEN: Final = -1


class LimitVersions:
    """Limits the versions of APIs, and hides some APIs."""

    def __init__(self, latest: Mapping[int, int], *, hides_others: bool = False, hides_features: bool = False) -> None:
        """`latest` has the latest version of each API, HIDDEN for an API to hide. `hides_others` hides all other APIs,
        `hides_features` the features of the cluster."""
        self._latest = latest
        self._hides_others = hides_others
        self._hides_features = hides_features

    def _is_beyond(self, view: RequestView) -> bool:
        return view.header.version > self._limit(view.header.key, view.header.version)

    def _limit(self, key: int, as_it_is: int) -> int:
        return self._latest.get(key, HIDDEN if self._hides_others else as_it_is)

    def concerns(self, view: RequestView) -> bool:
        """True for ApiVersions, and for requests that the older broker wouldn't support."""
        return view.header.key == ApiKey.API_VERSIONS or self._is_beyond(view)

    def answer(self, exchange: Exchange) -> Answer:
        view = exchange.view
        if view.header.key != ApiKey.API_VERSIONS or self._limit(ApiKey.API_VERSIONS, 0) == HIDDEN:
            name, version = name_of_api(view.header.key), view.header.version
            raise ProtocolError(f"{name} v{version} is hidden by fault {exchange.fault.id}", offset=0)
        if self._is_beyond(view):
            view = RequestView(exchange.broker, view.connection, with_version(view, NOT_SERVED))
            exchange = Exchange(exchange.broker, view, exchange.ask, exchange.fault)
        return Running(self._limited(exchange, exchange.awaited()))

    async def _limited(self, exchange: Exchange, begun: Awaited) -> AnswerBuffers:
        buffers = await begun.buffers()
        assert buffers is not None  # only Produce may have no answer
        response = response_in(exchange.view, buffers)
        assert isinstance(response, ApiVersionsResponse)
        response.api_keys = [api for api in response.api_keys if self._narrow(api)]
        if self._hides_features:
            response.supported_features, response.finalized_features = [], []
            response.finalized_features_epoch = -1
        return buffers_of(exchange.view, response)

    def _narrow(self, api: ApiVersion) -> bool:
        """Limits the advertised versions of an API. Returns False if none is left."""
        api.max_version = min(api.max_version, self._limit(api.api_key, api.max_version))
        return api.max_version >= api.min_version
