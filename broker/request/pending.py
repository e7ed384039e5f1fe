"""Delayed answers: of a parked request that its partitions can't answer yet, or of a handler that waits.

Partitions wake the requests that are parked on them; nothing polls. Source:
org.apache.kafka.server.purgatory.DelayedOperation, without a purgatory of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeAlias

from broker.replica.partition import Partition
from broker.replica.waiter import Waiter
from broker.request.context import AnswerBuffers, Context
from broker.request.eager import Waiting
from protocol.errors import ProtocolError
from protocol.types import Buffer

NEVER_NS: Final = 1 << 62

Answer: TypeAlias = "list[Buffer] | Parked | Running | None"
"""Buffers to send, None for no answer, or the request that will be answered later."""


class Parked(Waiter):
    """A request that waits without a coroutine. A task, two futures and a timer for each would cost more than the rest
    of a consumer's fetch, which waits again after every record.

    Its connection calls `begin`; a subclass implements `try_complete`.
    """

    __slots__ = (
        "_done", "_is_awake", "_loop", "_watched", "admits_next", "context", "deadline_ns", "is_late", "is_over",
    )  # fmt: skip

    def __init__(self, context: Context, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self._loop = asyncio.get_running_loop()
        self._done: Callable[[Answer | Exception], None] | None = None
        self._is_awake = False
        self._watched: list[Partition] = []
        self.admits_next = False
        """True if the connection may begin its next request of the same API now: this request holds no memory of its
        own, and has made all its changes.
        """
        self.context = context
        self.deadline_ns = NEVER_NS
        """The time at which it expires, by the monotonic clock (timeouts.py)."""
        self.is_late = False
        """True once it has expired."""
        self.is_over = False

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        """Starts to wait: `done` is called once with the answer or an error, unless the request is cancelled first.

        It may have been woken or have expired before: if a task returns the request, its connection begins it a turn of
        the event loop after the task has ended.
        """
        self._done = done
        if self._is_awake or self.is_late:
            self._loop.call_soon(self._complete, self.is_late)

    def watch(self, partitions: list[Partition]) -> None:
        """Lets these partitions, and no others, wake the request."""
        for partition in self._watched:
            partition.waiters.pop(self, None)
        self._watched = []
        for partition in partitions:
            self.watch_too(partition)

    def watch_too(self, partition: Partition) -> None:
        """Lets another partition wake the request."""
        self._watched.append(partition)
        partition.add_waiter(self)

    def try_complete(self, *, is_last: bool) -> Answer:
        """Returns the answer, or the request itself to keep waiting. The last attempt must return the answer."""
        return self

    def wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            if self._done is not None:
                self._loop.call_soon(self._complete, False)

    def expire(self) -> None:
        """Completes the request with what is available, because its time is over. If its connection doesn't await the
        answer yet, the request completes when the connection does."""
        self.is_late = True
        self._complete(True)

    def cancel(self) -> None:
        """Cancels the request: its answer is no longer expected."""
        self.is_over = True
        self._done = None
        self.watch([])

    def look(self, *, is_last: bool) -> Answer | Exception:
        """Returns the answer or the error that completes the request, or the request itself if it keeps waiting."""
        answer: Answer | Exception
        try:
            answer = self.try_complete(is_last=is_last)
            if answer is self:
                return answer
            if answer is None or isinstance(answer, list):
                answer = self.context.finish(answer)
        except Exception as error:
            answer = error
        self.cancel()
        return answer

    def _complete(self, is_last: bool) -> None:
        self._is_awake = False
        done = self._done
        if self.is_over or done is None:
            return
        answer = self.look(is_last=is_last)
        if answer is not self:
            done(answer)


class ResponseEncoder(Protocol):
    """Encodes responses of one API."""

    def encode(self, context: Context, response: object) -> AnswerBuffers:
        """Returns the frame of a response, with its client's throttle time."""

    async def encode_later(self, context: Context, response: object) -> AnswerBuffers:
        """Returns the frame of a response; a thread makes it if it is large."""

    def failed(self, context: Context, request: object, error: Exception) -> object:
        """Returns the response that rejects a request whose handler raised; the request is None if its body is no
        longer available."""

    async def failed_later(self, context: Context, request: object, error: Exception) -> object:
        """Returns the response that rejects a request; a thread makes it if it is large."""


class ParkedCall(Parked):
    """A parked request of a handler: it completes with a response, which is encoded then."""

    __slots__ = ("_encoder",)

    def __init__(self, context: Context, missing_bytes: int, *, committed_only: bool) -> None:
        super().__init__(context, missing_bytes, committed_only=committed_only)
        self._encoder: ResponseEncoder | None = None

    def bind(self, encoder: ResponseEncoder) -> None:
        """Sets the encoder of its response, and of its errors."""
        self._encoder = encoder

    def try_respond(self, *, is_last: bool) -> object | None:
        """Returns the response, or a coroutine that makes it; None to keep waiting. The last attempt must not return
        None."""

    def try_complete(self, *, is_last: bool) -> Answer:
        encoder = self._encoder
        assert encoder is not None
        try:
            response = self.try_respond(is_last=is_last)
        except ProtocolError:
            raise
        except Exception as error:
            response = encoder.failed(self.context, None, error)
        if response is None:
            return self
        if isinstance(response, Waiting):
            return Running(answer_later(encoder, self.context, None, response))
        return encoder.encode(self.context, response)


async def answer_later(
    encoder: ResponseEncoder, context: Context, request: object, response: Awaitable[object]
) -> Answer:
    """Awaits the rest of a handler and returns its answer after the interceptors, or the parked request that it
    returned. `request` is None if its body is no longer available.
    """
    try:
        result = await response
    except ProtocolError:
        raise
    except Exception as error:
        result = await encoder.failed_later(context, request, error)
    if isinstance(result, ParkedCall):
        result.bind(encoder)
        return result
    return context.finish(await encoder.encode_later(context, result))


class Running:
    """A request whose handler waits. Its connection begins it, and cancels it when the connection closes, as it does
    with parked requests.

    It runs the handler's coroutine as a task does, but without a task, which would cost more than the rest of a small
    request.
    """

    __slots__ = ("_awaited", "_done", "_has_begun", "_must_cancel", "_rest")

    def __init__(self, rest: Coroutine[Any, Any, Answer]) -> None:
        self._rest = rest
        self._has_begun = False
        self._awaited: asyncio.Future[object] | None = None
        """The future that the coroutine awaits; None while it runs, and before its turn."""
        self._must_cancel = False
        """True if the coroutine must see a cancellation in its next step."""
        self._done: Callable[[Answer | Exception], None] | None = None

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        """Starts to wait: `done` is called once with the answer or an error, unless the request is cancelled first."""
        self._done = done
        self._has_begun = True
        outcome = self._step()
        if outcome is not self:
            asyncio.get_running_loop().call_soon(self._end, outcome)

    def cancel(self) -> None:
        """Cancels the request: its answer is no longer expected."""
        self._done = None
        if not self._has_begun:
            self._rest.close()
        elif self._awaited is None or not self._awaited.cancel():
            self._must_cancel = True

    def _step(self) -> Answer | Exception:
        """Runs the coroutine up to its next wait. Returns the outcome, or the request itself if it waits."""
        try:
            if self._must_cancel:
                self._must_cancel = False
                awaited = self._rest.throw(asyncio.CancelledError())
            else:
                awaited = self._rest.send(None)
        except StopIteration as ended:
            answer: Answer = ended.value
            return answer
        except asyncio.CancelledError:  # if not by `cancel`: the handler awaited what was cancelled elsewhere
            return ProtocolError("its request was cancelled", offset=0)
        except Exception as error:
            return error
        if isinstance(awaited, asyncio.Future):
            awaited._asyncio_future_blocking = False  # the coroutine has set it, for the task that it expects
            awaited.add_done_callback(self._woken)
            self._awaited = awaited
            if self._must_cancel and awaited.cancel():  # `cancel` was called within the step
                self._must_cancel = False
        else:
            asyncio.get_running_loop().call_soon(self._woken, None)
        return self

    def _woken(self, awaited: asyncio.Future[object] | None) -> None:
        self._awaited = None
        if self._must_cancel and awaited is not None and not awaited.cancelled():
            awaited.exception()  # the coroutine won't read it, and that is no bug
        outcome = self._step()
        if outcome is not self:
            self._end(outcome)

    def _end(self, outcome: Answer | Exception) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(outcome)
        elif isinstance(outcome, (Parked, Running)):
            outcome.cancel()
