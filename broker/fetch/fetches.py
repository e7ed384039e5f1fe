"""The parts of a broker that its fetches use."""

from __future__ import annotations

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.disks.work import DiskWork
from broker.exchange.timeouts import Timeouts
from broker.fetch.sessions import FetchSessions
from broker.replica.replicas import Replicas
from coordinator.cluster.image import Image


class Fetches:
    """The parts of a broker that its fetches use: replicas, sessions, timeouts, disk threads, options."""

    __slots__ = ("clock", "disk_work", "image", "live_config", "replicas", "sessions", "timeouts")

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
        self.live_config = live_config
        self.replicas = replicas
        self.image = image
        self.sessions = sessions
        self.clock = clock
        self.disk_work = disk_work
        self.timeouts = timeouts

    @property
    def max_bytes(self) -> int:
        """The upper bound of an answer's records, whatever its client requests: fetch.max.bytes."""
        return self.live_config.layers.effective.fetch_max_bytes
