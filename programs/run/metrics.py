"""Builds the endpoint of metrics and health; imported only if odradek.metrics.listener is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.dispatch.broker import Broker
from broker.dispatch.host import Host
from broker.logging import get_logger
from broker.metadata.opening import ClusterPart
from broker.metrics.endpoint import MetricsEndpoint
from broker.metrics.sources import ProcessSources, Sources
from broker.network.listener import Listener
from programs.run.housekeeping import Housekeeping
from storage.disk import Disk

if TYPE_CHECKING:
    from programs.run.joining import Replication

logger = get_logger("broker.metrics")


async def listen(address: tuple[str, int], clock: Clock, disk: Disk, *, is_broker: bool) -> MetricsEndpoint:
    """Opens the endpoint, which shows only the process until a broker or controller is attached. Raises OSError."""
    endpoint = MetricsEndpoint(clock, disk, is_broker=is_broker)
    host, _ = address
    logger.info("metrics are served", host=host, port=await endpoint.listen(*address))
    return endpoint


def attach_broker(
    endpoint: MetricsEndpoint,
    broker: Broker,
    listeners: Sequence[Listener],
    cluster: ClusterPart,
    housekeeping: Housekeeping,
    replication: Replication | None,
    disk: Disk,
) -> None:
    """Adds the broker's metrics, once it serves clients."""
    endpoint.attach_broker(
        Sources(
            process=_process(endpoint, broker, listeners, cluster, disk),
            broker=broker,
            cleaner=housekeeping.cleaner,
            isr_manager=None if replication is None else replication.isr_manager,
            fetchers=None if replication is None else replication.fetchers,
        )
    )


def attach_controller(
    endpoint: MetricsEndpoint, host: Host, listeners: Sequence[Listener], cluster: ClusterPart, disk: Disk
) -> None:
    """Adds the controller's metrics, once it serves brokers."""
    endpoint.attach_controller(_process(endpoint, host, listeners, cluster, disk))


def _process(
    endpoint: MetricsEndpoint, host: Host, listeners: Sequence[Listener], cluster: ClusterPart, disk: Disk
) -> ProcessSources:
    first = listeners[0]  # all listeners share their memory accounting
    return ProcessSources(
        host=host,
        listeners=tuple(listeners),
        request_memory=first.memory,
        unread_answers=first.unread,
        cluster=cluster,
        loop=endpoint.loop,
        disk=disk,
        started_s=endpoint.started_s,
    )
