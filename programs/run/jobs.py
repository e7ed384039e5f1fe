"""Background jobs of a process, at intervals. The common jobs maintain its connections, memory and metadata.

A job that waits for a disk runs in a worker thread. A failed job is logged, and runs again after its interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from broker.clock import pause
from broker.config import BrokerConfig
from broker.dispatch.host import Host
from broker.logging import get_logger
from broker.network.listener import Listener
from broker.network.memory_back import give_back
from broker.network.stalls import CHECKS
from broker.request.log_limiter import INTERVAL_MS
from broker.workers import Workers
from programs.run.interpreter import collect_frozen
from storage.failure import StorageError

logger = get_logger(__name__)

MEMORY_INTERVAL_MS = 5_000
"""The interval at which memory of past requests is returned to the operating system, which takes some milliseconds."""

METADATA_INTERVAL_MS = 60_000
"""The interval at which the metadata log is checked for a due snapshot or truncation, as in Apache Kafka."""

CYCLES_INTERVAL_MS = 3_600_000
"""The interval at which all objects are searched for cycles, while clients wait: 0.1 to 0.3 s for each million."""

IDLE_CHECKS = 2
"""Checks of a connection within connections.max.idle.ms, so that it is closed late by at most half of it."""

LEAST_INTERVAL_MS = 100
"""Shortest interval of a job: an option of 0 means often, and must not keep the event loop busy."""

J = TypeVar("J", bound="Keeper", contravariant=True)
K = TypeVar("K", bound="Keeper")


class Job(NamedTuple, Generic[J]):
    """A background job, and its interval."""

    name: str
    interval_ms: Callable[[BrokerConfig], int]
    run: Callable[[J], None]
    in_thread: bool = False
    first: Callable[[J], None] | None = None
    """The part that waits for a disk, called in a thread before `run`."""


class Keeper:
    """Runs jobs from `start` to `stop`."""

    def __init__(self, host: Host, workers: Workers, listeners: Sequence[Listener]) -> None:
        self.host = host
        self.workers = workers
        self.listeners = listeners
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self: K, jobs: Sequence[Job[K]]) -> None:
        """Starts jobs, each in a task."""
        self._tasks += [asyncio.create_task(self.repeat(job), name=job.name) for job in jobs]

    def stop(self) -> None:
        """Ends all jobs."""
        for task in self._tasks:
            task.cancel()

    async def repeat(self: K, job: Job[K]) -> None:
        """Runs a job at its intervals."""
        while True:
            await pause(self.host.clock, max(LEAST_INTERVAL_MS, job.interval_ms(self.host.config)))
            try:
                if job.first is not None:
                    await self.workers.call(partial(job.first, self))
                if job.in_thread:
                    await self.workers.call(partial(job.run, self))
                else:
                    job.run(self)
            except StorageError:
                pass  # it was reported and handled, or logged as a bug
            except Exception:
                logger.exception("periodic job failed", job=job.name)

    def close_idle_connections(self) -> None:
        """Closes connections that were idle for connections.max.idle.ms; a negative limit keeps them."""
        for listener in self.listeners if self.host.config.connections_max_idle_ms >= 0 else ():
            listener.close_idle()

    def close_stalled_connections(self) -> None:
        config, now_ms = self.host.config, self.host.clock.now_ms()
        for listener in self.listeners:
            listener.close_stalled(now_ms, config.odradek_request_stall_timeout_ms)

    def log_suppressed_lines(self) -> None:
        for lines in {listener.lines for listener in self.listeners}:
            lines.begin_interval()
        for event, limiter in self.host.limited_lines.items():
            if suppressed := limiter.begin_interval():
                logger.warning(event, **suppressed)

    def give_memory_back(self) -> None:
        for memory in {listener.memory for listener in self.listeners}:
            give_back(memory)

    def maintain_metadata_snapshots(self) -> None:
        self.host.metadata_snapshots.maintain()


COMMON_JOBS: tuple[Job[Keeper], ...] = (
    Job("idle connections", lambda c: abs(c.connections_max_idle_ms) // IDLE_CHECKS, Keeper.close_idle_connections),
    Job(
        "stalled connections",
        lambda c: max(1, c.odradek_request_stall_timeout_ms // CHECKS),
        Keeper.close_stalled_connections,
    ),
    Job("suppressed lines", lambda c: INTERVAL_MS, Keeper.log_suppressed_lines),
    Job("memory", lambda c: MEMORY_INTERVAL_MS, Keeper.give_memory_back, in_thread=True),
    Job("reference cycles", lambda c: CYCLES_INTERVAL_MS, lambda _: collect_frozen()),
    Job("metadata snapshots", lambda c: METADATA_INTERVAL_MS, Keeper.maintain_metadata_snapshots),
)
