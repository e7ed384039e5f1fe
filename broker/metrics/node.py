"""This process: its state, event loop, connections, memory, directories, cleaner, and what it has of the machine."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from broker.metadata.node import NodeState
from broker.metrics.exposition import Family, FamilyKind, counter, gauge, labels
from broker.metrics.requests import quantiles
from broker.metrics.sources import Sources
from storage import log
from storage.disk import Disk, Space

STATES: Final = {
    NodeState.STARTING: 1,
    NodeState.RECOVERY: 2,
    NodeState.RUNNING: 3,
    NodeState.PENDING_CONTROLLED_SHUTDOWN: 6,
    NodeState.SHUTTING_DOWN: 7,
}
"""The numbers of org.apache.kafka.metadata.BrokerState."""

PAGE_BYTES: Final = resource.getpagesize()
KIB: Final = 1024


def node_families(sources: Sources) -> Iterator[Family]:
    """Yields the state of the broker and of its parts."""
    broker = sources.broker
    yield gauge("kafka_server_kafkaserver_brokerstate", "3 while it runs.", [("", STATES[broker.node.state])])
    idle = sources.loop.idle_share()
    yield gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "Share of the time that the event loop was idle, from 0 to 1.",
        [("", idle)],
    )
    yield gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent", "The same: one loop does both.", [("", idle)]
    )
    latenesses = sources.loop.latenesses_ms()
    yield Family("odradek_eventloop_latenessms", FamilyKind.SUMMARY, "How late timers of the last minute were.",
                 [*quantiles(latenesses, {})])  # fmt: skip
    yield gauge("odradek_eventloop_worst_latenessms", "The latest since the start.", [("", sources.loop.worst_ms)])
    yield gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections of clients and other brokers.",
        [
            (labels({"listener": listener.name, "networkProcessor": 0}), len(listener.connections))
            for listener in sources.listeners
        ],
    )
    yield gauge("odradek_requests_held_bytes", "Requests not yet answered.", [("", sources.request_memory.held_bytes)])
    yield gauge("odradek_answers_unread_bytes", "Answers not yet taken.", [("", sources.unread_answers.held_bytes)])
    compiled = labels({"compiled": str(is_compiled()).lower(), "python": ".".join(map(str, sys.version_info[:3]))})
    yield gauge("odradek_core_info", "The code at work, as labels.", [(compiled, 1)])


def is_compiled() -> bool:
    """True where the hot path is compiled."""
    return not (log.__file__ or "").endswith(".py")


def disk_families(sources: Sources, spaces: Mapping[str, Space]) -> Iterator[Family]:
    """Yields log directories, and the cleaner."""
    broker, cleaner = sources.broker, sources.cleaner
    dirs = list(broker.logs.dirs.values())
    offline = [log_dir for log_dir in dirs if not log_dir.online]
    yield gauge("kafka_log_logmanager_offlinelogdirectorycount", "Directories that failed.", [("", len(offline))])
    yield gauge(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 for a directory that failed.",
        [(labels({"logDirectory": log_dir.path}), int(not log_dir.online)) for log_dir in dirs],
    )
    volumes = [(labels({"logDirectory": directory}), space) for directory, space in spaces.items()]
    yield gauge(
        "odradek_logdirectory_total_bytes", "Size of its volume.", [(own, space.total_bytes) for own, space in volumes]
    )
    yield gauge(
        "odradek_logdirectory_free_bytes", "Room on its volume.", [(own, space.usable_bytes) for own, space in volumes]
    )
    yield counter("odradek_cleaner_cleaned_total", "Logs that were compacted.", [("", cleaner.cleaned)])
    yield gauge("odradek_cleaner_busy", "Logs being compacted.", [("", cleaner.at_work)])
    yield gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that cannot be compacted.",
        [(labels({"logDirectory": log_dir.path}), cleaner.count_uncleanable(log_dir.path)) for log_dir in dirs],
    )


def process_families(sources: Sources) -> Iterator[Family]:
    """Yields the process as prometheus_client's ProcessCollector names it, and Kafka's bytes read and written. What
    the system does not tell is left out."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "Processor time.", [("", round(usage.ru_utime + usage.ru_stime, 3))])
    yield gauge("process_start_time_seconds", "When it was started.", [("", sources.started_s)])
    yield gauge("process_max_fds", "Files that it may open.", [("", resource.getrlimit(resource.RLIMIT_NOFILE)[0])])
    pages = [int(text) for text in read(sources.disk, "/proc/self/statm").split()]
    if len(pages) > 1:
        yield gauge("process_virtual_memory_bytes", "Address space.", [("", pages[0] * PAGE_BYTES)])
        yield gauge("process_resident_memory_bytes", "Memory.", [("", pages[1] * PAGE_BYTES)])
    fields = dict(line.partition(": ")[::2] for line in read(sources.disk, "/proc/self/io").splitlines())
    for name, field in (("read", "read_bytes"), ("write", "write_bytes")):
        if field in fields:
            description = f"Bytes of the disk, {name}."
            yield gauge(f"kafka_server_kafkaserver_linux_disk_{name}_bytes", description, [("", int(fields[field]))])


def read(disk: Disk, path: str) -> str:
    """Returns what a file of the system says; nothing where it is not there, or not for us."""
    try:
        handle = disk.open(path, writable=False)
        try:
            return disk.pread(handle, PAGE_BYTES, 0).decode()  # such a file has no size of its own
        finally:
            disk.close(handle)
    except OSError:
        return ""
