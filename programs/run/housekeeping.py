"""The background jobs of a broker, at intervals: checkpoints, retention, deletion, idle connections.

Each job is a row of `JOBS`, or of `COMMON_JOBS` (`jobs.py`), which every process has.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.disks.cleaner import Cleaner
from broker.network.listener import Listener
from broker.replica.disk_failures import DiskFailures
from broker.requests.broker import Broker
from broker.workers import Workers
from programs.run.jobs import COMMON_JOBS, Job, Keeper

DELETION_INTERVAL_MS = 5_000
"""The interval of deletions; a file waits for a minute before it is deleted (log.segment.delete.delay.ms)."""

FLUSH_INTERVAL_MS = 1_000
"""The interval of flushes of logs whose flush.ms has passed or whose segment was rolled."""

DIRECTORY_INTERVAL_MS = 1_000
"""The interval of checks that log directories exist: a broker can still write to open files whose directory was
removed."""

ROOM_INTERVAL_MS = 5_000
"""The interval at which a full directory is checked for room."""

TELEMETRY_INTERVAL_MS = 10_000
"""The interval at which clients that no longer push telemetry are removed."""

LAG_CHECKS = 2
"""Checks of followers within replica.lag.time.max.ms, so that a follower leaves the ISR late by at most half of it."""


class Housekeeping(Keeper):
    """Runs the jobs of a broker from `start` to `stop`."""

    def __init__(self, broker: Broker, workers: Workers, listeners: Sequence[Listener], failures: DiskFailures) -> None:
        super().__init__(broker, workers, listeners)
        self.broker = broker
        self.failures = failures
        self.cleaner = Cleaner(broker.logs, broker.clock, broker.live_config)

    def start(self) -> None:
        """Starts all jobs, each in a task."""
        self.cleaner.start()
        self.begin(COMMON_JOBS)
        self.begin(JOBS)

    def stop(self) -> None:
        """Ends all jobs."""
        super().stop()
        self.cleaner.stop()

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

    def shrink_isrs(self) -> None:
        if self.broker.config.has_peers:  # else no partition has another replica
            now_ms = self.broker.clock.now_ms()
            for partition in self.broker.replicas:
                partition.shrink_isr(now_ms)

    def forget_clients(self) -> None:
        if self.broker.has_telemetry:
            self.broker.telemetry.expire()

    def forget_producers(self) -> None:
        now_ms = self.broker.clock.now_ms()
        for partition in self.broker.replicas:
            partition.forget_producers(now_ms)


JOBS: tuple[Job[Housekeeping], ...] = (
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
    Job("in-sync replicas", lambda c: max(c.replica_lag_time_max_ms // LAG_CHECKS, 1), Housekeeping.shrink_isrs),
    Job("telemetry", lambda c: TELEMETRY_INTERVAL_MS, Housekeeping.forget_clients),
    Job("producer ids", lambda c: c.producer_id_expiration_check_interval_ms, Housekeeping.forget_producers),
)
