"""Sums over this broker's replicas, and changes of in-sync replicas. Source: kafka.server.ReplicaManager."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.metrics.exposition import Family, counter, gauge
from broker.metrics.partitions import Row
from broker.metrics.sources import Sources

MANAGER = "kafka_server_replicamanager"


def replication_families(sources: Sources, partitions: Sequence[Row]) -> Iterator[Family]:
    """Yields the sums over all replicas."""
    offline = sources.broker.replicas.count_offline()
    under = sum(row.is_under_replicated for row in partitions)
    under_min = sum(row.is_under_min_isr for row in partitions)
    at_min = sum(row.is_at_min_isr for row in partitions)
    led = sum(row.is_led for row in partitions)
    yield gauge(f"{MANAGER}_leadercount", "Partitions that this broker leads.", [("", led)])
    yield gauge(f"{MANAGER}_partitioncount", "Partitions with a replica here.", [("", len(partitions) + offline)])
    yield gauge(
        (f"{MANAGER}_underreplicatedpartitions"),
        "Partitions led by this broker with a replica that is not in sync.",
        [("", under)],
    )
    yield gauge(
        (f"{MANAGER}_underminisrpartitioncount"),
        "Partitions led by this broker with fewer in-sync replicas than min.insync.replicas.",
        [("", under_min)],
    )
    yield gauge(
        (f"{MANAGER}_atminisrpartitioncount"),
        "Partitions led by this broker with as many in-sync replicas as min.insync.replicas.",
        [("", at_min)],
    )
    yield gauge(f"{MANAGER}_offlinereplicacount", "Replicas in directories that have failed.", [("", offline)])
    manager = sources.isr_manager
    shrinks, expands, failed = (0, 0, 0) if manager is None else (manager.shrinks, manager.expands, manager.failed)
    yield counter(f"{MANAGER}_isrshrinks_total", "Times that a replica left an ISR.", [("", shrinks)])
    yield counter(f"{MANAGER}_isrexpands_total", "Times that a replica joined an ISR.", [("", expands)])
    yield counter(
        (f"{MANAGER}_failedisrupdates_total"), "Changes of ISRs that the controller rejected.", [("", failed)]
    )
