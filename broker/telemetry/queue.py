"""A bounded queue of pushes: they are delivered one after the other, and pushes that can't be delivered are dropped.

A receiver that is away gets a push again, with growing pauses, as often as ATTEMPTS says. What does not fit into the
queue is dropped at once. Clients notice nothing of either.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from broker.exchange.log_limiter import LogLimiter
from broker.logging import get_logger
from broker.telemetry.push import Push
from protocol.errors import KafkaError

MAX_QUEUED_BYTES: Final = 16 << 20
ATTEMPTS: Final = 5
FIRST_RETRY_S: Final = 1.0

logger = get_logger("broker.telemetry")


class NotTaken(Exception):
    """A receiver did not take a push."""

    def __init__(self, reason: str, *, is_final: bool) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """True if the receiver would reject it again."""


Deliver: TypeAlias = "Callable[[Push], Awaitable[None]]"
"""Sends a push to its receiver. Raises NotTaken, KafkaError."""


class PushQueue:
    """Delivers pushes to one receiver, from the first push until `close`."""

    def __init__(self, receiver: str, deliver: Deliver, *, first_retry_s: float = FIRST_RETRY_S) -> None:
        """`receiver` names it in the log."""
        self._receiver = receiver
        self._deliver = deliver
        self._first_retry_s = first_retry_s
        self._pushes: deque[Push] = deque()
        self._task: asyncio.Task[None] | None = None
        self.lines = LogLimiter()
        """Limits the lines about pushes that were dropped."""
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
        """Stops delivering; queued pushes are dropped."""
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
                logger.error("telemetry of a client met a fault", receiver=self._receiver, exc_info=error)
                self.dropped += 1
            finally:
                self.held_bytes -= len(push.data)
        self._task = None

    async def _attempt(self, push: Push) -> None:
        pause_s = self._first_retry_s
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
            await asyncio.sleep(pause_s)
            pause_s *= 2

    def _drop(self, reason: str) -> None:
        self.dropped += 1
        if self.lines.allows(self._receiver):
            logger.warning("telemetry of a client was not handed on", receiver=self._receiver, reason=reason)
