"""Work on disks that clients wait for, in threads: flushes before an acknowledgement, checkpoints, cold reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from broker.clock import Clock
from broker.workers import Workers
from protocol.types import TopicPartition
from storage.cold import ColdRead
from storage.log import Log
from storage.logs import Logs

THREADS = 4
"""Number of threads; several, so that a slow disk delays only the clients that use it."""


class Rounds:
    """Runs work in rounds: a round serves all callers that asked before it began; callers that ask later share the next
    round.
    """

    def __init__(self, work: Callable[[], None], workers: Workers) -> None:
        self._work = work
        self._workers = workers
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True if no caller waits."""
        return self._running is None

    async def served(self) -> None:
        """Returns after the end of a round that began after this call; raises the round's error."""
        if self._running is None:
            await asyncio.shield(self._begin())
            return
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._next)

    def _begin(self) -> asyncio.Task[None]:
        """Begins a round. A round that is discarded with its loop, as in a simulated crash, begins no other."""
        running = self._running = asyncio.create_task(self._workers.call(self._work))
        running.add_done_callback(self._over)
        return running

    def _over(self, _: asyncio.Task[None]) -> None:
        waiting, self._next, self._running = self._next, None, None
        if waiting is not None:
            self._begin().add_done_callback(partial(_pass_on, waiting))


def _pass_on(waiting: asyncio.Future[None], done: asyncio.Task[None]) -> None:
    if waiting.done():
        return
    error = None if done.cancelled() else done.exception()
    if error is not None:
        waiting.set_exception(error)
        waiting.exception()  # the caller that waited may be gone
    else:
        waiting.set_result(None)


class DiskWork:
    """The worker threads and their work."""

    def __init__(self, logs: Logs, clock: Clock) -> None:
        self.workers = Workers(THREADS, "requests")
        self._logs = logs
        self._clock = clock
        self._flushes: dict[Log, Rounds] = {}
        self._checkpoints: dict[str, Rounds] = {}

    async def flushed(self, log: Log) -> None:
        """Returns once all records that the log has now are on the device. Raises LogDirFailure, LogDirFull."""
        rounds = self._flushes.get(log)
        if rounds is None:
            rounds = self._flushes[log] = Rounds(lambda: log.flush(self._clock.now_ms()), self.workers)
        await rounds.served()
        if rounds.is_idle:
            self._flushes.pop(log, None)

    async def checkpointed(self, log_dir: str) -> None:
        """Returns once the checkpoints of a directory's log starts and recovery points are on the device. Raises
        LogDirFailure, LogDirFull."""
        rounds = self._checkpoints.get(log_dir)
        if rounds is None:
            rounds = Rounds(partial(self._logs.write_checkpoints, log_dir), self.workers)
            self._checkpoints[log_dir] = rounds
        await rounds.served()

    def truncate(
        self, topic_partition: TopicPartition, offset: int, then: Callable[[BaseException | None], None], fully: bool
    ) -> None:
        """Truncates a log, or empties it if `fully`; then calls `then` on the event loop. A thread does it, because it
        copies a part of a segment and flushes it.
        """
        now_ms = self._clock.now_ms()
        self.workers.run(partial(self._truncate, topic_partition, offset, now_ms, fully), then)

    def _truncate(self, topic_partition: TopicPartition, offset: int, now_ms: int, fully: bool) -> None:
        self._logs.truncate_to(topic_partition, offset, now_ms, fully=fully)

    async def read_ahead(self, reads: Iterable[ColdRead]) -> None:
        """Returns once the bytes of `reads` are in memory. If a read fails, it fails again for the caller that then
        reads.
        """
        await asyncio.gather(*(self.workers.call(read.read_ahead) for read in reads), return_exceptions=True)

    def close(self) -> None:
        """Waits until the work that has begun is complete."""
        self.workers.close()
