"""Validates records in threads if that takes long, so that no request blocks the event loop for more than a moment.
Started work is finished even if the client disconnects: received records are appended, as in Apache Kafka, and a
producer with acks=0 may disconnect early. There are few threads, which bounds their total memory; further requests wait
with only their received bytes, and so do their connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from broker.logging import get_logger
from broker.workers import Workers
from protocol.errors import KafkaError, ProtocolError
from storage.appending.append import AppendRules, Settled, settle
from storage.producers.entry import Origin

T = TypeVar("T")

logger: Final = get_logger(__name__)

THREADS: Final = 2
"""Number of threads. Each works on one batch, and uses memory for a piece of the batch and for a codec's window: at
most 128 MB, for zstd's highest level."""


class RecordWork:
    """Validates records in threads, for appends that would block the event loop."""

    def __init__(self) -> None:
        self._workers = Workers(THREADS, "records")
        self._begun: set[asyncio.Task[object]] = set()

    async def settled(self, records: memoryview, rules: AppendRules, now_ms: int) -> Settled:
        """Returns the records as they will be in the log, as a copy. Raises KafkaError."""
        own = memoryview(bytearray(records))
        return await self.call(partial(settle, own, rules, Origin.CLIENT, now_ms, at_length=True))

    async def call(self, work: Callable[[], T]) -> T:
        """Does other work on records in a thread, such as a search by timestamp, or a conversion for older clients."""
        return await self._workers.call(work)

    def to_its_end(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begins `work`, and returns a future that may be cancelled at any time, even before it begins."""
        task = asyncio.get_running_loop().create_task(work)
        self._begun.add(task)
        awaited = asyncio.shield(task)
        task.add_done_callback(partial(self._ended, awaited))
        return awaited

    def _ended(self, awaited: asyncio.Future[T], task: asyncio.Task[T]) -> None:
        """Handles an error of work whose client has disconnected: no answer is due, and only a bug of the broker is
        logged."""
        self._begun.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, (KafkaError, ProtocolError)):
            if not awaited.cancelled():
                awaited.exception()  # no coroutine may ever await it
        elif error is not None and awaited.cancelled():
            logger.error("work on records failed, and its client has gone", exc_info=error)

    async def close(self) -> None:
        """Waits for started work."""
        if self._begun:
            await asyncio.gather(*self._begun, return_exceptions=True)
        self._workers.close()
