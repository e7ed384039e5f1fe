"""Answers that are not there yet: of a request that is parked until a log grows, or of a handler that waits.

A parked request is woken by appends, never polled. Kafka's DelayedFetch in its purgatory, without the purgatory: it
hangs on the partitions that it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeAlias

from broker.exchange.context import Context
from broker.exchange.eager import Waiting
from broker.replica.partition import Partition
from broker.replica.waiter import Waiter
from protocol.errors import ProtocolError
from protocol.types import Buffer

NEVER_NS: Final = 1 << 62

Answer: TypeAlias = "list[Buffer] | Parked | Running | None"
"""Buffers to write, None for no answer, or what will say it in its time."""


class Parked(Waiter):
    """A request that waits without a coroutine: a task, two futures and a timer of its own cost more than the rest of a
    consumer's request, whom every record makes wait anew.

    Whoever parks one calls `begin`; a subclass says by `look` what there is when it looks.
    """

    __slots__ = ("_done", "_is_awake", "_loop", "_watched", "context", "deadline_ns", "is_over")

    def __init__(self, context: Context, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self._loop = asyncio.get_running_loop()
        self._done: Callable[[Answer | Exception], None] | None = None
        self._is_awake = False
        self._watched: list[Partition] = []
        self.context = context
        self.deadline_ns = NEVER_NS
        """When it expires, by the monotonic clock (timeouts.py)."""
        self.is_over = False

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        """Has `done` called once with the answer, or what went wrong, unless it is cancelled first."""
        self._done = done

    def watch(self, partitions: list[Partition]) -> None:
        """Be woken by these from now on, and by no others."""
        for partition in self._watched:
            partition.waiters.pop(self, None)
        self._watched = partitions
        for partition in partitions:
            partition.waiters[self] = None

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


class Way(Protocol):
    """How what a handler comes to becomes an answer."""

    def encode(self, context: Context, response: object) -> list[Buffer]:
        """The frame of a response."""

    def failure(self, context: Context, error: Exception) -> object:
        """The response to a request that raised."""


class ParkedCall(Parked):
    """One whose response is not there yet."""

    __slots__ = ("_way",)

    def __init__(self, context: Context, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(context, missing_bytes, committed_only=committed_only)
        self._way: Way | None = None

    def bind(self, way: Way) -> None:
        """How its response becomes bytes, and an error a response."""
        self._way = way

    def find(self, *, is_last: bool) -> object | None:
        """The response, or the rest of a coroutine that comes to it; None to go on waiting, which the last look does
        not."""

    def look(self, *, is_last: bool) -> Answer:
        way = self._way
        assert way is not None
        try:
            response = self.find(is_last=is_last)
        except ProtocolError:
            raise
        except Exception as error:
            response = way.failure(self.context, error)
        if response is None:
            return self
        if isinstance(response, Waiting):
            return Running(later(way, self.context, response))
        return way.encode(self.context, response)


async def later(way: Way, context: Context, response: Waiting[object]) -> Answer:
    """The rest of a handler that waits, and its answer, finished unless it is still to come."""
    try:
        result = await response
    except ProtocolError:
        raise
    except Exception as error:
        result = way.failure(context, error)
    if isinstance(result, ParkedCall):
        result.bind(way)
        return result
    return context.finish(None if result is None else way.encode(context, result))


class Running:
    """A request whose handler waits: the rest of its coroutine, as a task. The connection begins it, and cancels it
    when it ends itself, as it does with one that is parked."""

    __slots__ = ("_done", "_rest", "_task")

    def __init__(self, rest: Coroutine[Any, Any, Answer]) -> None:
        self._rest = rest
        self._task: asyncio.Task[Answer] | None = None
        self._done: Callable[[Answer | BaseException], None] | None = None

    def begin(self, done: Callable[[Answer | BaseException], None]) -> None:
        """Has `done` called once with the answer, or what went wrong, unless it is cancelled first."""
        self._done = done
        self._task = asyncio.get_running_loop().create_task(self._rest)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self._done = None
        if self._task is None:
            self._rest.close()
        else:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[Answer]) -> None:
        done, self._done = self._done, None
        if task.cancelled():
            if done is not None:  # not by us: the handler awaited what somebody else gave up
                done(ProtocolError("its request was given up", offset=0))
            return
        error = task.exception()
        if done is not None:
            done(task.result() if error is None else error)
