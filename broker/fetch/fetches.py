"""The parts of a broker that its fetches use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.config.replication import RACK_AWARE
from broker.disks.work import DiskWork
from broker.fetch.sessions import FetchSessions
from broker.replica.read_replica import RackAwareSelector
from broker.replica.replicas import Replicas
from broker.replica.throttle import leader_throttle
from broker.request.authorisation import Authorizer
from broker.request.timeouts import Timeouts
from coordinator.cluster.image import Image

if TYPE_CHECKING:
    from broker.request.client_quotas import ClientQuotas


class Fetches:
    """The parts of a broker that its fetches use: replicas, sessions, timeouts, disk threads, options."""

    __slots__ = (
        "authorizer", "clock", "disk_work", "image", "live_config", "quotas", "replicas", "selects_by_rack", "sessions",
        "throttle", "timeouts",
    )  # fmt: skip

    def __init__(
        self,
        live_config: LiveConfig,
        replicas: Replicas,
        image: Image,
        sessions: FetchSessions,
        clock: Clock,
        disk_work: DiskWork,
        timeouts: Timeouts,
    ) -> None:
        self.authorizer: Authorizer | None = None
        """The authorizer of reads; None if everything is allowed."""
        self.quotas: ClientQuotas | None = None
        """The quotas of clients' fetches; None if there are none."""
        self.live_config = live_config
        self.replicas = replicas
        self.image = image
        self.sessions = sessions
        self.clock = clock
        self.disk_work = disk_work
        self.timeouts = timeouts
        self.throttle = leader_throttle(clock, live_config)
        self.selects_by_rack = live_config.effective.replica_selector_class == RACK_AWARE

    @property
    def max_bytes(self) -> int:
        """The upper bound of an answer's records, whatever its client requests: fetch.max.bytes."""
        return self.live_config.effective.fetch_max_bytes

    def selector(self, listener: str, rack: str) -> RackAwareSelector | None:
        """Returns the selector of read replicas for a consumer in this rack; None if it reads from leaders."""
        return RackAwareSelector(self.image, listener, rack) if rack and self.selects_by_rack else None
