"""Enforces the quotas in the cluster's metadata, once the first quota is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.dispatch.api import Apis
from broker.dispatch.broker import Broker
from coordinator.cluster.changes import Delta, QuotaChanged
from programs.run.listening import Listening
from protocol.api_key import ApiKey
from protocol.lazy import lazy
from protocol.schema import identity

if TYPE_CHECKING:
    from broker.request import client_quotas
else:  # with the first quota
    client_quotas = lazy("broker.request.client_quotas")

FRAME_HEADER_BYTES = 8
"""Bytes of an answer's size and correlation id. A flexible answer has tags after them."""


class Limiting:
    """Waits for the first quota; a broker without quotas imports nothing and checks nothing."""

    def __init__(self, broker: Broker, listening: Listening) -> None:
        self._broker = broker
        self._listening = listening
        self._quotas: client_quotas.ClientQuotas | None = None
        if broker.image.quotas:
            self._begin()
        broker.loader.subscribe(self._changed)

    def _changed(self, delta: Delta) -> None:
        if self._quotas is None and delta.has(QuotaChanged):
            self._begin()

    def _begin(self) -> None:
        broker, config = self._broker, self._broker.config
        self._quotas = client_quotas.ClientQuotas(
            broker.loader,
            broker.interceptors,
            broker.clock,
            config.quota_window_num,
            config.quota_window_size_seconds * 1000,
            lambda key, version: throttle_position(broker.apis, key, version),
            self._apply,
        )

    def _apply(self, quotas: client_quotas.ClientQuotas) -> None:
        self._broker.fetches.quotas = quotas if quotas.limits_fetches else None
        limit = quotas.connections_per_second if quotas.limits_addresses else None
        self._listening.limit_addresses(limit)


def throttle_position(apis: Apis, key: int, version: int) -> int | None:
    """Returns the position of the throttle time in an API's answer; None if the answer doesn't begin with it."""
    api = apis.find(key)
    if api is None or not api.begins_with_throttle_time(version):
        return None
    has_tags = version in identity(api.response).flexible and key != ApiKey.API_VERSIONS
    return FRAME_HEADER_BYTES + has_tags
