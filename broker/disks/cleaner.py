"""Compaction: picks the dirtiest log, lets a process clean it, and swaps each new segment in.

It follows Kafka's LogCleaner, with processes in place of threads (`log.cleaner.threads` of them, started when there is
work). A log that can't be cleaned is reported once, and skipped until the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from broker.clock import Clock, next_turn, pause
from broker.config.live import LiveConfig
from broker.disks.cleaner_client import CleanerProcess, Died, Failed, Order, Outcome
from broker.logging import get_logger
from broker.workers import Workers
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.cleaner.choice import Dirty, dirty_part, job_of, whole_part
from storage.cleaner.job import Cleaned, CleanedSegment, CleaningJob
from storage.cleaner.swap import swap_in
from storage.config import LogConfig
from storage.failure import OUT_OF_SPACE, StorageBug, failing, failure, full
from storage.log import Log
from storage.logs import Logs

EXAMINED_AT_ONCE = 100
"""Number of logs that are examined in one turn of the event loop."""

IDLE_MS = 60_000
"""Time after which an idle process ends: it takes some 25 MB, and a tenth of a second to start."""

MIN_MAP_BYTES = 1 << 20
"""Minimum memory of each process for its offset map, as in Kafka."""

MAX_DEATHS = 2
"""Number of processes that may die while cleaning a log; then the log is skipped, because it is probably the reason."""

logger = get_logger(__name__)


class Uncleanable(NamedTuple):
    """A log that is skipped, and the reason."""

    log: Log
    config: LogConfig
    """The config with which the cleaning failed; with another config the log is tried again."""
    reason: str


class Cleaner:
    """Cleans logs from `start` to `stop`, while log.cleaner.enable is set."""

    def __init__(self, logs: Logs, clock: Clock, config: LiveConfig) -> None:
        self.logs = logs
        self._clock = clock
        self._config = config
        self.uncleanable: dict[TopicPartition, Uncleanable] = {}
        self.cleaned = 0
        """Logs cleaned since the start."""
        self._deaths: dict[TopicPartition, int] = {}
        self._workers = Workers(max(config.effective.log_cleaner_threads, 1), "cleaner")
        self._idle: list[CleanerProcess] = []
        self._busy: dict[asyncio.Task[None], CleanerProcess] = {}
        self._rested_ms = 0
        self._manager: asyncio.Task[None] | None = None

    @property
    def at_work(self) -> int:
        """The number of logs that are being cleaned."""
        return len(self._busy)

    def count_uncleanable(self, directory: str) -> int:
        """Returns the number of logs of a directory that are skipped."""
        return sum(uncleanable.log.log_dir == directory for uncleanable in self.uncleanable.values())

    def start(self) -> None:
        if self._config.effective.log_cleaner_enable and self._config.effective.log_cleaner_threads:
            self._manager = asyncio.create_task(self._manage(), name="cleaner")

    def stop(self) -> None:
        """Stops cleaning. A log that is being cleaned stays as it was."""
        for task in (self._manager, *self._busy):
            if task is not None:
                task.cancel()
        for process in (*self._idle, *self._busy.values()):
            process.kill()
        self._workers.close()

    async def _manage(self) -> None:
        while True:
            try:
                dirty = await self.choose()
            except Exception:
                logger.exception("selecting logs to clean failed")
                dirty = None
            if dirty is not None and len(self._busy) < self._config.effective.log_cleaner_threads:
                self._begin(dirty)
            elif self._busy:
                timeout_s = self._config.effective.log_cleaner_backoff_ms / 1000
                await asyncio.wait(self._busy, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            else:
                await self._rest()

    async def clean_now(self, target: Log) -> bool:
        """Cleans a log up to its last closed segment, even if little of it is dirty; False if nothing was dirty. Also
        cleans segments that are clean already, because their tombstones may have expired. Raises KafkaError."""
        while target.is_at_work and self._busy:
            await asyncio.wait(self._busy, return_when=asyncio.FIRST_COMPLETED)
        with failing(target.log_dir, f"looking for what to clean of {target.topic_partition}", report=target.report):
            dirty = dirty_part(target, self._clock.now_ms())
            part = dirty or whole_part(target, self._clock.now_ms())
        if part is None or not self._may_be_cleaned(target):
            return False
        await asyncio.wait([self._begin(part)])
        return dirty is not None

    def _begin(self, dirty: Dirty) -> asyncio.Task[None]:
        process = self._idle.pop() if self._idle else CleanerProcess()
        dirty.log.cleaning = True
        self._rested_ms = 0
        task = asyncio.create_task(self._clean(dirty, process), name=f"clean {dirty.log.topic_partition}")
        self._busy[task] = process
        task.add_done_callback(lambda _: self._done(task, dirty.log))
        return task

    def _done(self, task: asyncio.Task[None], cleaned: Log) -> None:
        cleaned.cleaning = False
        self._idle.append(self._busy.pop(task))
        if not task.cancelled() and (error := task.exception()) is not None:
            self._give_up(cleaned, repr(error))

    async def _rest(self) -> None:
        """Waits until logs may have become dirty. Ends processes that were idle for long."""
        pause_ms = self._config.effective.log_cleaner_backoff_ms
        await pause(self._clock, pause_ms)
        self._rested_ms += pause_ms
        if self._rested_ms >= IDLE_MS:
            while self._idle:
                self._idle.pop().kill()

    async def choose(self) -> Dirty | None:
        """Returns the log to clean next: the log with the largest dirty ratio among those that are dirty enough."""
        self._forget_deleted()
        filthiest: Dirty | None = None
        for count, candidate in enumerate([stored for stored in self.logs if stored.config.compact], 1):
            if not self._may_be_cleaned(candidate):
                continue
            dirty = self._look_at(candidate)
            if dirty is not None and (filthiest is None or dirty.ratio > filthiest.ratio):
                filthiest = dirty
            if count % EXAMINED_AT_ONCE == 0:
                await next_turn()
        return filthiest

    def _forget_deleted(self) -> None:
        for name, uncleanable in list(self.uncleanable.items()):
            if self.logs.get(name) is not uncleanable.log:
                del self.uncleanable[name]

    def _may_be_cleaned(self, candidate: Log) -> bool:
        name = candidate.topic_partition
        uncleanable = self.uncleanable.get(name)
        is_given_up = uncleanable is not None and uncleanable[:2] == (candidate, candidate.config)
        return not candidate.is_at_work and not is_given_up and self.logs.future(name) is None

    def _look_at(self, candidate: Log) -> Dirty | None:
        now_ms = self._clock.now_ms()
        doing = f"looking for what to clean of {candidate.topic_partition}"
        try:
            candidate.apply_retention(now_ms)  # the cleaner applies the retention of a compacted log, as in Kafka
            with failing(candidate.log_dir, doing, report=candidate.report):
                dirty = dirty_part(candidate, now_ms)
                return dirty if dirty is not None and dirty.is_due else None
        except KafkaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                self._give_up(candidate, error.message)
            return None

    async def _clean(self, dirty: Dirty, process: CleanerProcess) -> None:
        """Cleans one log, from the order to the process up to the checkpoint."""
        target, clock = dirty.log, self._clock
        truncations = target.truncations
        self.uncleanable.pop(target.topic_partition, None)
        began_ms = clock.monotonic_ms()
        try:
            async for outcome in self._outcomes(dirty, process):
                if self.logs.get(target.topic_partition) is not target or target.truncations != truncations:
                    process.kill()
                    return
                if isinstance(outcome, CleanedSegment):
                    if not swap_in(target, outcome, disk=self.logs.disk, now_ms=clock.now_ms()):
                        process.kill()
                        return
                elif isinstance(outcome, Failed):
                    self._failed(target, outcome)
                    await pause(self._clock, self._config.effective.log_cleaner_backoff_ms)
                else:
                    await self._finish(dirty, outcome, clock.monotonic_ms() - began_ms)
        except Died as death:
            self._died(target, death)
        except OSError as error:
            logger.error("no cleaner process", reason=str(error))
            await pause(self._clock, self._config.effective.log_cleaner_backoff_ms)
        except KafkaError as error:  # the directory has failed or is full, which was reported; or a bug was logged
            logger.warning("not cleaned", partition=str(target.topic_partition), reason=error.message)

    async def _outcomes(self, dirty: Dirty, process: CleanerProcess) -> AsyncIterator[Outcome]:
        rate = self._config.effective.log_cleaner_io_max_bytes_per_second / self._threads
        job = await self._workers.call(partial(self._job, dirty, self._clock.now_ms()))
        await self._workers.call(partial(process.order, Order(job, rate)))
        while True:
            outcome = await self._workers.call(process.outcome)
            yield outcome
            if not isinstance(outcome, CleanedSegment):
                return

    @property
    def _threads(self) -> int:
        return max(self._config.effective.log_cleaner_threads, 1)

    def _job(self, dirty: Dirty, now_ms: int) -> CleaningJob:
        target, config = dirty.log, self._config.effective
        map_bytes = max(config.log_cleaner_dedupe_buffer_size // self._threads, MIN_MAP_BYTES)
        load_factor = config.log_cleaner_io_buffer_load_factor
        with failing(target.log_dir, f"preparing to clean {target.topic_partition}", report=target.report):
            job = job_of(dirty, now_ms, map_bytes=map_bytes, load_factor=load_factor)
        target.flush(now_ms)
        self.logs.write_checkpoints(target.log_dir)
        return job

    async def _finish(self, dirty: Dirty, cleaned: Cleaned, took_ms: int) -> None:
        target, logs = dirty.log, self.logs
        target.cleaned_to = min(cleaned.end_offset, target.log_end_offset)
        await self._workers.call(partial(logs.disk.fsync_dir, target.directory))
        await self._workers.call(partial(logs.write_checkpoints, target.log_dir))
        self.cleaned += 1
        self._deaths.pop(target.topic_partition, None)
        logger.info(
            "log cleaned",
            partition=str(target.topic_partition),
            dirty_from=dirty.first_dirty_offset,
            clean_to=cleaned.end_offset,
            bytes_read=cleaned.bytes_read,
            bytes_kept=cleaned.bytes_written,
            took_ms=took_ms,
            map_full=round(cleaned.map_full, 3),
            without_key=cleaned.invalid_records,
        )

    def _failed(self, target: Log, failed: Failed) -> None:
        doing = f"cleaning {target.topic_partition}"
        if failed.errno in OUT_OF_SPACE:
            full(target.log_dir, doing, OSError(failed.errno, failed.reason), target.report)
        elif failed.errno:
            failed_so = failure(target.log_dir, doing, OSError(failed.errno, failed.reason), target.report)
            if isinstance(failed_so, StorageBug):
                self._give_up(target, failed.reason)
        else:
            self._give_up(target, failed.reason)

    def _died(self, target: Log, death: Died) -> None:
        deaths = self._deaths[target.topic_partition] = self._deaths.get(target.topic_partition, 0) + 1
        logger.error("cleaner process died", partition=str(target.topic_partition), reason=str(death))
        if deaths >= MAX_DEATHS:
            self._give_up(target, f"{deaths} cleaner processes died while they cleaned it")

    def _give_up(self, failed: Log, reason: str) -> None:
        self.uncleanable[failed.topic_partition] = Uncleanable(failed, failed.config, reason)
        logger.error("log cannot be cleaned", partition=str(failed.topic_partition), reason=reason)
