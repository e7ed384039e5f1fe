"""Puts the endpoint of metrics and health together; imported only where odradek.metrics.listener is set."""

from __future__ import annotations

from collections.abc import Sequence

from broker.clock import Clock
from broker.logging import get_logger
from broker.metadata.log import MetadataLog
from broker.metrics.endpoint import MetricsEndpoint
from broker.metrics.sources import Sources
from broker.network.listener import Listener
from broker.process.housekeeping import Housekeeping
from broker.replica.alter_partition import AlterPartitionManager
from broker.requests.broker import Broker
from storage.disk import Disk

log = get_logger("broker.metrics")


async def listen(address: tuple[str, int], clock: Clock) -> MetricsEndpoint:
    """Opens the endpoint, which has health but no metrics yet. Raises OSError."""
    endpoint = MetricsEndpoint(clock)
    host, _ = address
    log.info("metrics are served", host=host, port=await endpoint.listen(*address))
    return endpoint


def attach(
    endpoint: MetricsEndpoint,
    broker: Broker,
    listeners: Sequence[Listener],
    metadata_log: MetadataLog,
    housekeeping: Housekeeping,
    isr_manager: AlterPartitionManager | None,
    disk: Disk,
    started_ms: int,
) -> None:
    """The broker serves clients by now: its metrics can be read."""
    first = listeners[0]  # all listeners share what they account for
    endpoint.attach(
        Sources(
            broker=broker,
            listeners=tuple(listeners),
            request_memory=first.memory,
            unread_answers=first.unread,
            metadata_log=metadata_log,
            cleaner=housekeeping.cleaner,
            isr_manager=isr_manager,
            loop=endpoint.loop,
            disk=disk,
            started_s=started_ms / 1000,
        )
    )
