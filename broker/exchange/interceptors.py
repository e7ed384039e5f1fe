"""The one place that every answer passes before it is sent: of a short cut, a handler, a parked request, or an error.

Requests are counted and timed here, without a call that compiled code could not see through. Interceptors throttle or
log them: each sees every answer once, with its request's context. A request whose connection breaks off has no answer,
and passes none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from broker.exchange.context import AnswerBuffers, Context
from broker.exchange.request_times import RequestTimes

Interceptor: TypeAlias = Callable[[Context, AnswerBuffers], AnswerBuffers]
"""(context, answer) → the answer that is sent in its place; nearly always the same."""


class Interceptors:
    """The interceptors of a broker's answers, in the order in which they are called."""

    __slots__ = ("_interceptors", "times")

    def __init__(self, times: RequestTimes) -> None:
        self.times = times
        self._interceptors: tuple[Interceptor, ...] = ()

    def add(self, interceptor: Interceptor) -> None:
        """Adds an interceptor, which sees every answer from now on."""
        self._interceptors = (*self._interceptors, interceptor)

    def remove(self, interceptor: Interceptor) -> None:
        """Removes an interceptor, which sees no answer from now on."""
        self._interceptors = tuple(other for other in self._interceptors if other != interceptor)

    def finish(self, context: Context, answer: AnswerBuffers) -> AnswerBuffers:
        """Returns the answer to send, as the interceptors have it."""
        self.times.answered(context)
        for interceptor in self._interceptors:
            answer = interceptor(context, answer)
        return answer
