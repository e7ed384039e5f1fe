"""Broker: what the handlers have in common, put together by server.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.fetch_sessions import FetchSessions
from broker.replica.replicas import Replicas

if TYPE_CHECKING:
    from broker.dispatch import Api
    from coordinator.cluster import Cluster
    from coordinator.cluster.registry import Registry
    from storage.logs import Logs


class Broker:
    """One running broker, as its handlers see it."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        cluster: Cluster,
        logs: Logs,
        replicas: Replicas,
        fetch_sessions: FetchSessions,
        apis: Sequence[Api],
    ) -> None:
        self.config = config
        self.clock = clock
        self.cluster = cluster
        self.logs = logs
        self.replicas = replicas
        self.fetch_sessions = fetch_sessions
        self.apis = apis

    @property
    def registry(self) -> Registry:
        return self.cluster.registry
