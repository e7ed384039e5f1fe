"""Requests that wait for a log to grow: parked once, woken by appends, never polled.

Kafka's DelayedFetch in its purgatory, without the purgatory: the parked request hangs on the partitions that it reads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from protocol.errors import ProtocolError
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.network.connection import Answer
    from broker.replica.partition import Partition
    from broker.requests.context import Context

TIMER_RESOLUTION_S: Final = 0.0005
"""An event loop's clock has milliseconds, and may call that much too early."""


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or one of them needs attention.

    With `committed_only` what an open transaction holds back does not count; its end calls for attention.
    """

    __slots__ = ("committed_only", "missing_bytes")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        self.missing_bytes = missing_bytes
        self.committed_only = committed_only

    def appended(self, size_bytes: int) -> None:
        self.missing_bytes -= size_bytes
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """It should look again; nothing is done on the spot, since an append may be on its way."""


class Sleeper(Waiter):
    """One that a coroutine awaits."""

    __slots__ = ("wakened",)

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self.wakened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self.wakened.done():
            self.wakened.set_result(None)

    async def woken_by(self, partitions: list[Partition], deadline_s: float) -> None:
        """Returns once one of these wakes it, or at the deadline."""
        timer = asyncio.get_running_loop().call_at(deadline_s, self.wake)
        for partition in partitions:
            partition.waiters.add(self)
        try:
            await self.wakened
        finally:
            timer.cancel()
            for partition in partitions:
                partition.waiters.discard(self)


class Parked(Waiter):
    """A request that waits without a coroutine: a task, two futures and a timer of its own cost more than the rest of a
    consumer's request, whom every record makes wait anew.

    Whoever parks one calls `begin`; a subclass says by `look` what there is when it looks.
    """

    __slots__ = ("_done", "_is_awake", "_loop", "_watched", "context", "deadline_s", "is_over")

    def __init__(self, context: Context, max_wait_ms: int, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self._loop = asyncio.get_running_loop()
        self._done: Callable[[Answer | Exception], None] | None = None
        self._is_awake = False
        self._watched: list[Partition] = []
        self.context = context
        self.deadline_s = self._loop.time() + max_wait_ms / 1000
        self.is_over = False

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        """Has `done` called once with the answer, or what went wrong, unless it is cancelled first."""
        self._done = done

    def watch(self, partitions: list[Partition]) -> None:
        """Be woken by these from now on, and by no others."""
        for partition in self._watched:
            partition.waiters.discard(self)
        self._watched = partitions
        for partition in partitions:
            partition.waiters.add(self)

    def look(self, *, is_last: bool) -> Answer:
        """The answer; itself to go on waiting, which the last look does not."""
        return self

    def wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._look, False)

    def expire(self) -> None:
        """The time is up."""
        self._look(True)

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self.is_over = True
        self._done = None
        self.watch([])

    def _look(self, is_last: bool) -> None:
        self._is_awake = False
        done = self._done
        if self.is_over or done is None:
            return
        answer: Answer | Exception
        try:
            answer = self.look(is_last=is_last)
            if answer is self:
                return
            if answer is None or isinstance(answer, list):
                answer = self.context.finish(answer)
        except Exception as error:
            answer = error
        self.cancel()
        done(answer)


class ParkedCall(Parked):
    """One of the general way: a handler's response that is not there yet."""

    __slots__ = ("_encode", "_fail")

    def __init__(self, context: Context, max_wait_ms: int, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(context, max_wait_ms, missing_bytes, committed_only=committed_only)
        self._encode: Callable[[object], list[Buffer]] | None = None
        self._fail: Callable[[Exception], object] | None = None

    def bind(self, encode: Callable[[object], list[Buffer]], fail: Callable[[Exception], object]) -> None:
        """How its response becomes bytes, and an error a response."""
        self._encode, self._fail = encode, fail

    def find(self, *, is_last: bool) -> object | None:
        """The response; None to go on waiting, which the last look does not."""

    def look(self, *, is_last: bool) -> Answer:
        assert self._encode is not None
        assert self._fail is not None
        try:
            response = self.find(is_last=is_last)
        except ProtocolError:
            raise
        except Exception as error:
            response = self._fail(error)
        return self if response is None else self._encode(response)


class Timeouts:
    """Ends what has waited long enough: by one timer for all that wait equally long, as nearly all consumers do."""

    def __init__(self) -> None:
        self._queues: dict[int, deque[Parked]] = {}

    def add(self, parked: Parked, max_wait_ms: int) -> None:
        """It expires at its deadline, which is so far from now, if it is not over by then."""
        queue = self._queues.get(max_wait_ms)
        if queue is None:
            queue = self._queues[max_wait_ms] = deque()
            self._arm(parked.deadline_s, max_wait_ms)
        while queue and queue[0].is_over:
            queue.popleft()
        queue.append(parked)

    def _arm(self, deadline_s: float, max_wait_ms: int) -> None:
        asyncio.get_running_loop().call_at(deadline_s, partial(self._expire, max_wait_ms))

    def _expire(self, max_wait_ms: int) -> None:
        queue = self._queues[max_wait_ms]
        now_s = asyncio.get_running_loop().time() + TIMER_RESOLUTION_S
        try:
            while queue and (queue[0].is_over or queue[0].deadline_s <= now_s):
                parked = queue.popleft()
                if not parked.is_over:
                    parked.expire()
        finally:  # whatever one of them comes to, the others have their time
            if queue:
                self._arm(queue[0].deadline_s, max_wait_ms)
            else:
                del self._queues[max_wait_ms]
