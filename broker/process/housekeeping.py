"""The background jobs of a broker, at intervals: checkpoints, retention, deletion, idle connections.

Each job is a row of `JOBS`; those that wait for a disk run in a worker thread. A job that fails is logged, and runs
again after its interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.disks.cleaner import Cleaner
from broker.disks.failures import DiskFailures
from broker.exchange.log_limiter import INTERVAL_MS
from broker.logging import get_logger
from broker.network.listener import Listener
from broker.network.memory_back import give_back
from broker.network.stalls import CHECKS
from broker.replica.followers import shrink_isr
from broker.requests.broker import Broker
from broker.workers import Workers
from storage.failure import StorageError

log = get_logger("broker.process.housekeeping")

DELETION_INTERVAL_MS = 5_000
"""The interval of deletions; a file waits for a minute before it is deleted (log.segment.delete.delay.ms)."""

FLUSH_INTERVAL_MS = 1_000
"""The interval of flushes, of logs that flush.ms makes due or whose segment was rolled."""

DIRECTORY_INTERVAL_MS = 1_000
"""The interval of checks that log directories are there: a broker can write to files that are open, though nobody will
find them."""

ROOM_INTERVAL_MS = 5_000
"""The interval of checks whether a full directory has room again."""

MEMORY_INTERVAL_MS = 5_000
"""The interval at which memory of past requests is given back to the operating system, which takes some
milliseconds."""

METADATA_INTERVAL_MS = 60_000
"""The interval of checks whether a snapshot or a cut of the metadata log is due by time, as in Apache Kafka."""

LAG_CHECKS = 2
"""Looks at followers within replica.lag.time.max.ms, so that one leaves the ISR at most half of it too late."""

IDLE_CHECKS = 2
"""How often a connection is checked within connections.max.idle.ms, so that it is closed at most half of that late."""


class Job(NamedTuple):
    """A background job, and its interval."""

    name: str
    interval_ms: Callable[[BrokerConfig], int]
    run: Callable[[Housekeeping], None]
    in_thread: bool = False
    first: Callable[[Housekeeping], None] | None = None
    """The part that would wait for a disk, called in a thread before `run`."""


class Housekeeping:
    """Runs the jobs from `start` to `stop`."""

    def __init__(self, broker: Broker, workers: Workers, listeners: Sequence[Listener], failures: DiskFailures) -> None:
        self.broker = broker
        self.failures = failures
        self.workers = workers
        self.listeners = listeners
        self.cleaner = Cleaner(broker.logs, broker.clock, broker.live_config)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begins all jobs, each in a task."""
        self.cleaner.start()
        self._tasks = [asyncio.create_task(self._repeat(job), name=job.name) for job in JOBS]

    def stop(self) -> None:
        """Ends all jobs."""
        for task in self._tasks:
            task.cancel()
        self.cleaner.stop()

    async def _repeat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(job.interval_ms(self.broker.config) / 1000)
            try:
                if job.first is not None:
                    await self.workers.call(partial(job.first, self))
                if job.in_thread:
                    await self.workers.call(partial(job.run, self))
                else:
                    job.run(self)
            except StorageError:
                pass  # it has been reported, and is acted upon; or logged, where it is a fault of ours
            except Exception:
                log.exception("housekeeping failed", job=job.name)

    def close_idle_connections(self) -> None:
        for listener in self.listeners:
            listener.close_idle()

    def close_stalled_connections(self) -> None:
        config, now_ms = self.broker.config, self.broker.clock.now_ms()
        for listener in self.listeners:
            listener.close_stalled(now_ms, config.odradek_request_stall_timeout_ms)

    def log_suppressed_lines(self) -> None:
        for lines in {listener.lines for listener in self.listeners}:
            lines.begin_interval()

    def give_memory_back(self) -> None:
        for memory in {listener.memory for listener in self.listeners}:
            give_back(memory)

    def checkpoint(self) -> None:
        self.broker.logs.write_checkpoints()

    def checkpoint_high_watermarks(self) -> None:
        self.broker.logs.write_high_watermarks()

    def flush(self) -> None:
        self.broker.logs.flush_due(self.broker.clock.now_ms())

    def delete_files(self) -> None:
        self.broker.logs.delete_expired(self.broker.clock.now_ms())

    def check_directories(self) -> None:
        self.broker.logs.look_for_dirs()

    def check_room(self) -> None:
        self.failures.look_for_room()

    def stat_old_segments(self) -> None:
        self.broker.logs.look_at_old_segments(self.broker.clock.now_ms())

    def apply_retention(self) -> None:
        self.broker.logs.apply_retention(self.broker.clock.now_ms())

    def maintain_metadata_snapshots(self) -> None:
        self.broker.metadata_snapshots.maintain()

    def shrink_isrs(self) -> None:
        if self.broker.config.has_remote_controllers:  # else no partition has another replica
            now_ms = self.broker.clock.now_ms()
            for partition in self.broker.replicas:
                shrink_isr(partition, now_ms)

    def forget_producers(self) -> None:
        now_ms = self.broker.clock.now_ms()
        for partition in self.broker.replicas:
            partition.forget_producers(now_ms)


JOBS = (
    Job("idle connections", lambda c: c.connections_max_idle_ms // IDLE_CHECKS, Housekeeping.close_idle_connections),
    Job(
        "stalled connections",
        lambda c: max(1, c.odradek_request_stall_timeout_ms // CHECKS),
        Housekeeping.close_stalled_connections,
    ),
    Job("connection lines", lambda c: INTERVAL_MS, Housekeeping.log_suppressed_lines),
    Job("memory", lambda c: MEMORY_INTERVAL_MS, Housekeeping.give_memory_back, in_thread=True),
    Job("checkpoints", lambda c: c.log_flush_offset_checkpoint_interval_ms, Housekeeping.checkpoint, in_thread=True),
    Job(
        "high watermarks",
        lambda c: max(c.replica_high_watermark_checkpoint_interval_ms, 1),
        Housekeeping.checkpoint_high_watermarks,
        in_thread=True,
    ),
    Job("flushes", lambda c: FLUSH_INTERVAL_MS, Housekeeping.flush, in_thread=True),
    Job(
        "retention",
        lambda c: c.log_retention_check_interval_ms,
        Housekeeping.apply_retention,
        first=Housekeeping.stat_old_segments,
    ),
    Job("deletion", lambda c: DELETION_INTERVAL_MS, Housekeeping.delete_files, in_thread=True),
    Job("directories", lambda c: DIRECTORY_INTERVAL_MS, Housekeeping.check_directories, in_thread=True),
    Job("room", lambda c: ROOM_INTERVAL_MS, Housekeeping.check_room),
    Job("metadata snapshots", lambda c: METADATA_INTERVAL_MS, Housekeeping.maintain_metadata_snapshots),
    Job(
        "in-sync replicas",
        lambda c: max(c.replica_lag_time_max_ms // LAG_CHECKS, 1),
        Housekeeping.shrink_isrs,
    ),
    Job("producer ids", lambda c: c.producer_id_expiration_check_interval_ms, Housekeeping.forget_producers),
)
