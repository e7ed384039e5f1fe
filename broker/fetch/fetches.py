"""What all fetches of a broker have in common."""

from __future__ import annotations

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.disks.work import DiskWork
from broker.exchange.timeouts import Timeouts
from broker.fetch.sessions import FetchSessions
from broker.replica.replicas import Replicas
from coordinator.cluster.image import Image


class Fetches:
    """Where they read, wait, and find their sessions."""

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
        """The most that an answer has, whatever its client asks for: fetch.max.bytes."""
        return self.live_config.layers.effective.fetch_max_bytes
