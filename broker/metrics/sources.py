"""The parts of a running broker that its metrics are read from."""

from __future__ import annotations

from collections.abc import Sized
from typing import NamedTuple, Protocol

from broker.disks.cleaner import Cleaner
from broker.metadata.log import MetadataLog
from broker.metrics.loop_watch import LoopWatch
from broker.replica.alter_partition import AlterPartitionManager
from broker.requests.broker import Broker
from storage.disk import Disk


class ListenerConnections(Protocol):
    """A listener, as far as its connections are counted."""

    @property
    def name(self) -> str: ...

    @property
    def connections(self) -> Sized: ...


class HeldMemory(Protocol):
    """Memory that clients make the broker hold."""

    @property
    def held_bytes(self) -> int: ...


class Sources(NamedTuple):
    """All that the families are read from."""

    broker: Broker
    listeners: tuple[ListenerConnections, ...]
    request_memory: HeldMemory
    unread_answers: HeldMemory
    metadata_log: MetadataLog
    cleaner: Cleaner
    isr_manager: AlterPartitionManager | None
    """None where no partition has another replica."""
    loop: LoopWatch
    disk: Disk
    started_s: float
    """The time of the start, in seconds since the epoch."""
