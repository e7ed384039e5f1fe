"""A bounded queue of pushes, which are delivered one after the other.

If a delivery fails, it is retried with growing pauses; after ATTEMPTS failures, or if the queue is full, the push is
dropped. Clients don't notice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from broker.clock import Clock, pause
from broker.logging import get_logger
from broker.request.log_limiter import LogLimiter
from broker.telemetry.push import Push
from protocol.backoff import Backoff
from protocol.errors import KafkaError

MAX_QUEUED_BYTES: Final = 16 << 20
ATTEMPTS: Final = 5
BACKOFF: Final = Backoff(initial_ms=1_000, max_ms=8_000)

logger = get_logger(__name__)


class NotTaken(Exception):
    """The receiver did not accept a push."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """True if a retry would fail as well."""


Deliver: TypeAlias = "Callable[[Push], Awaitable[None]]"
"""Sends a push to its receiver. Raises NotTaken, KafkaError."""


class PushQueue:
    """Delivers pushes to one receiver, from the first push until `close`."""

    def __init__(self, receiver: str, deliver: Deliver, clock: Clock) -> None:
        """`receiver` is the receiver's name in the log."""
        self._receiver = receiver
        self._deliver = deliver
        self._clock = clock
        self._pushes: deque[Push] = deque()
        self._task: asyncio.Task[None] | None = None
        self.lines = LogLimiter()
        """Limits the log lines about dropped pushes."""
        self.held_bytes = 0
        self.delivered = 0
        self.dropped = 0

    def take(self, push: Push) -> None:
        """Queues a push, unless the queue is full."""
        if self.held_bytes + len(push.data) > MAX_QUEUED_BYTES:
            self._drop("the queue is full")
            return
        self._pushes.append(push)
        self.held_bytes += len(push.data)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stops the delivery and drops the queued pushes."""
        if self._task is not None:
            self._task.cancel()
        self._pushes.clear()

    async def _run(self) -> None:
        while self._pushes:
            push = self._pushes.popleft()
            try:
                await self._attempt(push)
                self.delivered += 1
            except (NotTaken, KafkaError) as error:
                self._drop(str(error))
            except Exception as error:  # a bug costs one push, not all that follow
                logger.error(
                    "delivery of a client's metrics failed unexpectedly", receiver=self._receiver, exc_info=error
                )
                self.dropped += 1
            finally:
                self.held_bytes -= len(push.data)
        self._task = None

    async def _attempt(self, push: Push) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._deliver(push)
                return
            except NotTaken as error:
                if error.is_final or attempt == ATTEMPTS:
                    raise
            except KafkaError as error:
                if not error.code.retriable or attempt == ATTEMPTS:
                    raise
            await pause(self._clock, BACKOFF.delay_ms(attempt))

    def _drop(self, reason: str) -> None:
        self.dropped += 1
        if self.lines.allows(self._receiver):
            logger.warning("a client's metrics were dropped", receiver=self._receiver, reason=reason)
