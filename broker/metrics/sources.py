"""The parts of a running process that its metrics are read from."""

from __future__ import annotations

from collections.abc import Sized
from typing import NamedTuple, Protocol

from broker.disks.cleaner import Cleaner
from broker.dispatch.broker import Broker
from broker.dispatch.host import Host
from broker.metadata.opening import ClusterPart
from broker.metrics.loop_watch import LoopWatch
from broker.replica.alter_partition import AlterPartitionManager
from broker.replica.replica_fetchers import ReplicaFetchers
from storage.disk import Disk


class HeldMemory(Protocol):
    """The memory that clients make the process use."""

    @property
    def held_bytes(self) -> int: ...


class ListenerView(Protocol):
    """A listener. All listeners of a process share their memory accounting."""

    @property
    def name(self) -> str: ...

    @property
    def connections(self) -> Sized: ...

    @property
    def memory(self) -> HeldMemory: ...

    @property
    def unread(self) -> HeldMemory: ...


class ProcessSources(NamedTuple):
    """The parts of every process, broker or controller."""

    host: Host
    listeners: tuple[ListenerView, ...]
    cluster: ClusterPart
    loop: LoopWatch
    disk: Disk
    started_s: float
    """The time of the start, in seconds since the epoch."""

    @property
    def is_controller(self) -> bool:
        """True if this node leads the quorum."""
        return self.cluster.metadata_log.role == "leader"


class Sources(NamedTuple):
    """The further parts of a broker."""

    process: ProcessSources
    broker: Broker
    cleaner: Cleaner
    isr_manager: AlterPartitionManager | None
    """The manager of ISR changes; None if no partition has a replica on another broker."""
    fetchers: ReplicaFetchers | None
    """The replica fetchers; None if no partition has a replica on another broker."""
