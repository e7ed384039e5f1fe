"""Enforces the quotas in the cluster's metadata, once the first quota is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.dispatch.broker import Broker
from coordinator.cluster.changes import Delta, QuotaChanged
from programs.run.listening import Listening
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.request import client_quotas
    from broker.request.client_quotas import ClientQuotas
else:  # with the first quota
    client_quotas = lazy("broker.request.client_quotas")


class Limiting:
    """Waits for the first quota; a broker without quotas imports nothing and checks nothing."""

    def __init__(self, broker: Broker, listening: Listening) -> None:
        self._broker = broker
        self._listening = listening
        self._quotas: ClientQuotas | None = None
        if broker.image.quotas:
            self._begin()
        broker.loader.subscribe(self._changed)

    def _changed(self, delta: Delta) -> None:
        if self._quotas is None and delta.has(QuotaChanged):
            self._begin()

    def _begin(self) -> None:
        broker, config = self._broker, self._broker.config
        broker.interceptors.add(client_quotas.pause_throttled)
        self._quotas = client_quotas.ClientQuotas(
            broker.loader,
            broker.clock,
            config.quota_window_num,
            config.quota_window_size_seconds * 1000,
            self._apply,
        )

    def _apply(self, quotas: ClientQuotas) -> None:
        self._broker.quotas = quotas if quotas.is_on else None
        self._broker.fetches.quotas = quotas if quotas.limits_fetches else None
        limit = quotas.connections_per_second if quotas.limits_addresses else None
        self._listening.limit_addresses(limit)
