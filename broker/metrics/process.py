"""A process, broker or controller: its event loop, connections, memory, and the resources that it uses."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import Final

from broker.core import is_compiled
from broker.metrics.exposition import Family, FamilyKind, counter, gauge, labels
from broker.metrics.loop_watch import LoopWatch
from broker.metrics.machine import MachineState
from broker.metrics.requests import quantiles
from broker.metrics.sources import ProcessSources
from storage.disk import Disk

PAGE_BYTES: Final = resource.getpagesize()


def connection_families(sources: ProcessSources) -> Iterator[Family]:
    """Yields the number of connections, and the memory that they use."""
    yield gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections of clients and other nodes.",
        [
            (labels({"listener": listener.name, "networkProcessor": 0}), len(listener.connections))
            for listener in sources.listeners
        ],
    )
    yield gauge(
        "odradek_requests_held_bytes",
        ("Bytes of requests that are not answered yet."),
        [("", sources.listeners[0].memory.held_bytes)],
    )
    yield gauge(
        "odradek_answers_unread_bytes",
        ("Bytes of answers that clients have not read yet."),
        [("", sources.listeners[0].unread.held_bytes)],
    )


def loop_families(loop: LoopWatch) -> Iterator[Family]:
    """Yields the load and the delays of the event loop, and if it is compiled."""
    idle = loop.idle_share()
    yield gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "Share of the time that the event loop was idle, from 0 to 1.",
        [("", idle)],
    )
    yield gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        ("The same value: one event loop does the work of both."),
        [("", idle)],
    )
    yield gauge("kafka_server_raftmetrics_poll_idle_ratio_avg", "The same value again.", [("", idle)])
    latenesses = loop.latenesses_ms()
    yield Family("odradek_eventloop_latenessms", FamilyKind.SUMMARY, "Delays of timers in the last minute.",
                 [*quantiles(latenesses, {})])  # fmt: skip
    yield gauge(
        "odradek_eventloop_worst_latenessms", ("Longest delay of a timer since the start."), [("", loop.worst_ms)]
    )
    compiled = labels({"compiled": str(is_compiled()).lower(), "python": ".".join(map(str, sys.version_info[:3]))})
    yield gauge(
        "odradek_core_info",
        ("Whether the hot path is compiled, and the version of Python, as labels."),
        [(compiled, 1)],
    )


def process_families(disk: Disk, started_s: float, machine: MachineState) -> Iterator[Family]:
    """Yields the process metrics of prometheus_client's ProcessCollector, and Kafka's bytes read and written, as far as
    the system reports them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "Processor time.", [("", round(usage.ru_utime + usage.ru_stime, 3))])
    yield gauge("process_start_time_seconds", "Start time, in seconds since the epoch.", [("", started_s)])
    yield gauge(
        "process_max_fds", ("Maximum number of open files."), [("", resource.getrlimit(resource.RLIMIT_NOFILE)[0])]
    )
    if machine.open_files is not None:
        yield gauge("process_open_fds", "Open files and sockets.", [("", machine.open_files)])
    pages = [int(text) for text in read(disk, "/proc/self/statm").split()]
    if len(pages) > 1:
        yield gauge("process_virtual_memory_bytes", "Address space.", [("", pages[0] * PAGE_BYTES)])
        yield gauge("process_resident_memory_bytes", "Memory.", [("", pages[1] * PAGE_BYTES)])
    fields = dict(line.partition(": ")[::2] for line in read(disk, "/proc/self/io").splitlines())
    for name, field in (("read", "read_bytes"), ("write", "write_bytes")):
        if field in fields:
            description = f"Bytes of disk I/O: {name}."
            yield gauge(f"kafka_server_kafkaserver_linux_disk_{name}_bytes", description, [("", int(fields[field]))])


def read(disk: Disk, path: str) -> str:
    """Returns the content of a system file; empty if it doesn't exist or can't be read."""
    try:
        handle = disk.open(path, writable=False)
        try:
            return disk.pread(handle, PAGE_BYTES, 0).decode()  # the size of such a file is reported as 0
        finally:
            disk.close(handle)
    except OSError:
        return ""
