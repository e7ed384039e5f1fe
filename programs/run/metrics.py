"""Puts the endpoint of metrics and health together; imported only where odradek.metrics.listener is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.logging import get_logger
from broker.metadata.opening import ClusterPart
from broker.metrics.endpoint import MetricsEndpoint
from broker.metrics.sources import ProcessSources, Sources
from broker.network.listener import Listener
from broker.requests.broker import Broker
from broker.requests.host import Host
from programs.run.housekeeping import Housekeeping
from storage.disk import Disk

if TYPE_CHECKING:
    from programs.run.joining import Replication

log = get_logger("broker.metrics")


async def listen(address: tuple[str, int], clock: Clock, disk: Disk, *, is_broker: bool) -> MetricsEndpoint:
    """Opens the endpoint, which tells of the process alone until something is attached. Raises OSError."""
    endpoint = MetricsEndpoint(clock, disk, is_broker=is_broker)
    host, _ = address
    log.info("metrics are served", host=host, port=await endpoint.listen(*address))
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
    """The broker serves clients by now: its metrics can be read."""
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
    """The controller serves brokers by now: likewise."""
    endpoint.attach_controller(_process(endpoint, host, listeners, cluster, disk))


def _process(
    endpoint: MetricsEndpoint, host: Host, listeners: Sequence[Listener], cluster: ClusterPart, disk: Disk
) -> ProcessSources:
    first = listeners[0]  # all listeners share what they account for
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
