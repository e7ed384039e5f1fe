"""Reads of files that options name, in threads: a network file system may hang, and then only the reader waits.

A decision about configs does not read files. It raises FilesUnchecked, a thread checks the files, and the decision is
made again with the verdict; other requests are decided meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from broker.clock import Clock, done_by
from broker.workers import DaemonThreads
from coordinator.cluster.configs.rules import ConfigRules, FileCheck, FilesUnchecked, FileVerdict
from protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")

MAX_FILE_READS: Final = 4
"""Maximum number of reads at work. A hung file system keeps the thread of each for as long as it hangs."""

FILE_READ_TIMEOUT_MS: Final = 10_000
"""A third of the time that clients wait for an answer (request.timeout.ms), so that they see the reason."""


class FileReads:
    """Runs work that reads files in threads of its own. A stop does not wait for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads = DaemonThreads("files")
        self._at_work = 0

    async def call(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`. Raises REQUEST_TIMED_OUT after FILE_READ_TIMEOUT_MS, and at once while
        MAX_FILE_READS are at work."""
        if self._at_work >= MAX_FILE_READS:
            message = (
                f"{MAX_FILE_READS} earlier reads of files that options name have not ended; is a file system hung?"
            )
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
        reading = asyncio.get_running_loop().run_in_executor(self._threads, work)
        self._at_work += 1
        reading.add_done_callback(self._ended)
        if not await done_by(self._clock, self._clock.monotonic_ms() + FILE_READ_TIMEOUT_MS, reading):
            message = f"the files that options name were not read within {FILE_READ_TIMEOUT_MS} ms"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
        return reading.result()

    def _ended(self, reading: asyncio.Future[T]) -> None:
        self._at_work -= 1
        if not reading.cancelled():
            reading.exception()  # asyncio would report it if the caller has given up

    async def decided(self, rules: ConfigRules, decide: Callable[[ConfigRules], Awaitable[T]]) -> T:
        """Returns what `decide` returns by these rules, with a verdict on the files that it depends on."""
        while True:
            try:
                return await decide(rules)
            except FilesUnchecked as unchecked:
                check = unchecked.check
            rules = rules.knowing(FileVerdict(check.subject, await self._rejection(check)))

    async def _rejection(self, check: FileCheck) -> KafkaError | None:
        try:
            await self.call(check.run)
        except KafkaError as error:
            return error
        return None
