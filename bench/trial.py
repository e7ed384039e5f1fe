"""A peer under a load: started, filled, and measured round by round."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

from bench import cost, wire
from bench.figures import MB, MILLION, Sample, ToolResult, per_work
from bench.load import Load, Method, Tool, ToolRun
from bench.peers.peer import PeerProcess, Unavailable

TOOL_TIMEOUT_S = 300
# The lowest rate that is expected of a tool, however small the machine.
RECORDS_PER_S_AT_LEAST = 5_000
# Time for which a started broker is left alone before its idle memory is read, and for which idle connections are
# watched.
SETTLE_S = 0.3
WATCH_S = 3.0
ERROR_LINES = 4
KB = 1_000


class ToolFailed(Exception):
    """A tool failed; the message has the end of its output."""


def run(command: list[str], timeout_s: int = TOOL_TIMEOUT_S) -> str:
    """Returns a command's standard output. Raises ToolFailed."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"no end within {timeout_s} s") from None
    if ended.returncode:
        output = f"{ended.stdout}\n{ended.stderr}".strip().splitlines()[-ERROR_LINES:]
        raise ToolFailed(f"status {ended.returncode}: {' | '.join(output)}")
    return ended.stdout


def use(tool: Tool, job: ToolRun) -> ToolResult:
    if tool.before is not None:
        run(tool.before(job))
    timeout_s = max(TOOL_TIMEOUT_S, job.load.records // RECORDS_PER_S_AT_LEAST)
    return tool.parse(run(tool.command(job), timeout_s), job)


def allow_many_files() -> None:
    """Raises the limit of open files to this user's maximum, because some loads hold thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def unwind_at_sigterm() -> None:
    """Makes SIGTERM end this process like an error, so that everything that was started is stopped."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


CONNECTIONS_OF_AN_ADDRESS = 500
SOURCES = cycle(f"127.0.0.{last}" for last in range(2, 255))
"""Addresses of clients. The ports of closed connections can't be used again for a minute, so that one address doesn't
have enough of them.
"""


@contextmanager
def held(bootstrap: str, count: int) -> Iterator[None]:
    """Holds `count` open connections, each of which has got one answer."""
    source = ""
    with ExitStack() as stack:
        for number in range(count):
            if number % CONNECTIONS_OF_AN_ADDRESS == 0:
                source = next(SOURCES)
            connection = stack.enter_context(wire.connect(bootstrap, source=source))
            wire.ask(connection, wire.API_VERSIONS_REQUEST)
        yield


def drop_from_memory(folder: Path) -> None:
    """Writes a folder's files to the disk and drops their pages, so that the next read comes from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


MANY_PARTITIONS = 1_000
"""Number of partitions from which on a topic serves all rounds, because several such topics could exceed the limit of
open files.
"""


TOPICS_LEFT = 3
"""Number of rounds whose topics stay, long enough that their pages are written back as in a broker that deletes
nothing.
"""


class Trial:
    """A peer under a load. Errors are raised; the caller turns them into the reason in its row."""

    def __init__(self, peer: PeerProcess, load: Load, work: Path) -> None:
        self.peer, self.load, self.work = peer, load, work
        self._idle_bytes = 0
        self._filled: dict[str, None] = {}
        """Existing topics, the oldest first."""

    def open(self) -> None:
        """Starts the peer, unless the load measures the start. Raises Unavailable if the peer lacks an API that the
        load needs.
        """
        self.peer.prepare()
        if self.load.method is not Method.START_UP:
            self.start()
        if reason := self.peer.refusal(self.load):
            raise Unavailable(reason)

    def start(self) -> Sample:
        """Returns the times from the start of the process, and the memory of a broker that has not worked yet."""
        self.peer.start()
        served_ns = self.peer.wait_until_serving()
        self.peer.wait_until_ready()
        time.sleep(SETTLE_S)
        self._idle_bytes = cost.memory(self.peer.pid).resident_bytes
        started_ns = self.peer.started_ns
        times = {"ready_ms": (self.peer.ready_ns - started_ns) / 1e6, "metadata_ms": (served_ns - started_ns) / 1e6}
        return times | {"rss_idle_mb": self._idle_bytes / MB}

    def close(self) -> None:
        self.peer.stop()

    def measure(self, number: int) -> Sample:
        """Measures one round. Rounds with negative numbers warm the peer up; they are measured like the others."""
        return METHODS[self.load.method](self, number)

    def topic(self, number: int) -> str:
        """Returns the topic of a round; creates and fills it if that is needed."""
        load = self.load
        shared = load.one_topic or (load.filled_by is not None and not load.cold) or load.partitions >= MANY_PARTITIONS
        name = load.name if shared else f"{load.name}-{number if number >= 0 else f'warm-up{number}'}"
        if name not in self._filled:
            self.peer.create_topic(name, load.partitions, load.topic_configs)
            self._filled[name] = None
            if load.filled_by is not None:
                job = ToolRun(self.peer.bootstrap, name, load.filled_by, number, self.work)
                use(self.peer.tool(load.filled_by), job)
        if load.cold:
            drop_from_memory(self.peer.data)
        return name

    def forget_old_topics(self) -> None:
        """Deletes the topics of all but the last few rounds, because no disk has space for many rounds."""
        while len(self._filled) > TOPICS_LEFT:
            oldest = next(iter(self._filled))
            self.peer.delete_topic(oldest)
            del self._filled[oldest]

    def use_tool(self, number: int) -> Sample:
        job = ToolRun(self.peer.bootstrap, self.topic(number), self.load, number, self.work)
        with held(self.peer.bootstrap, self.load.connections):
            before, held_bytes = cost.spent(self.peer.pid), cost.memory(self.peer.pid).private_bytes
            work = use(self.peer.tool(self.load), job)
            cpu = cost.between(before, cost.spent(self.peer.pid))
            grown_bytes = cost.memory(self.peer.pid).private_bytes - held_bytes
        self.forget_old_topics()
        return per_work(work, cpu) | self.memory() | {"kb_each": grown_bytes / work.records / KB}

    def memory(self) -> dict[str, float]:
        """Returns the memory: idle before the first round, at its peak, and now."""
        now = cost.memory(self.peer.pid)
        return {
            "rss_idle_mb": self._idle_bytes / MB,
            "rss_peak_mb": now.peak_bytes / MB,
            "private_mb": now.private_bytes / MB,
        }

    def watch_idle(self, number: int) -> Sample:
        """Measures the cost of connections: to open (with one request each), to hold, and in memory."""
        if self.load.partitions >= MANY_PARTITIONS:
            self.topic(number)
        count, pid = self.load.connections, self.peer.pid
        before, began = cost.memory(pid).resident_bytes, cost.spent(pid)
        with held(self.peer.bootstrap, count):
            made, grown = cost.spent(pid), cost.memory(pid).resident_bytes - before
            time.sleep(WATCH_S)
            idle_s = cost.between(made, cost.spent(pid)).total_s
        return self.memory() | {
            "cpu_s_per_million": cost.between(began, made).total_s / count * MILLION,
            "cpu_percent": idle_s / WATCH_S * 100,
            "kb_per_connection": max(0, grown) / count / KB,
        }

    def start_up(self, _: int) -> Sample:
        try:
            return self.start()
        finally:
            self.peer.stop()


METHODS: Mapping[Method, Callable[[Trial, int], Sample]] = {
    Method.TOOL: Trial.use_tool,
    Method.IDLE: Trial.watch_idle,
    Method.START_UP: Trial.start_up,
}
