"""A broker: its state, its log directories and its cleaner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from broker.metadata.node import NodeState
from broker.metrics.exposition import Family, counter, gauge, labels
from broker.metrics.sources import Sources
from storage.disk import Space

STATES: Final = {
    NodeState.STARTING: 1,
    NodeState.RECOVERY: 2,
    NodeState.RUNNING: 3,
    NodeState.PENDING_CONTROLLED_SHUTDOWN: 6,
    NodeState.SHUTTING_DOWN: 7,
}
"""The numbers of org.apache.kafka.metadata.BrokerState."""


def state_families(state: NodeState) -> Iterator[Family]:
    """Yields the broker's state."""
    yield gauge(
        "kafka_server_kafkaserver_brokerstate",
        ("3 if the broker is running, less while it starts, more while it stops."),
        [("", STATES[state])],
    )


def disk_families(sources: Sources, spaces: Mapping[str, Space]) -> Iterator[Family]:
    """Yields the log directories and the cleaner."""
    broker, cleaner = sources.broker, sources.cleaner
    dirs = list(broker.logs.dirs.values())
    offline = [log_dir for log_dir in dirs if not log_dir.online]
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount", ("Log directories that have failed."), [("", len(offline))]
    )
    yield gauge(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 if the log directory has failed.",
        [(labels({"logDirectory": log_dir.path}), int(not log_dir.online)) for log_dir in dirs],
    )
    volumes = [(labels({"logDirectory": directory}), space) for directory, space in spaces.items()]
    yield gauge(
        "odradek_logdirectory_total_bytes",
        ("Size of the log directory's volume."),
        [(own, space.total_bytes) for own, space in volumes],
    )
    yield gauge(
        "odradek_logdirectory_free_bytes",
        ("Free space on the log directory's volume."),
        [(own, space.usable_bytes) for own, space in volumes],
    )
    yield counter("odradek_cleaner_cleaned_total", "Logs that were compacted.", [("", cleaner.cleaned)])
    yield gauge("odradek_cleaner_busy", "Logs being compacted.", [("", cleaner.at_work)])
    yield gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that cannot be compacted.",
        [(labels({"logDirectory": log_dir.path}), cleaner.count_uncleanable(log_dir.path)) for log_dir in dirs],
    )
