"""The path of every answer before it is sent, whether from a fast path, a handler, a parked request, or an error.

Requests are counted and timed here, without a call that compiled code couldn't resolve. Interceptors throttle or log
them: each sees every answer once, with its request's context. A request whose connection closes has no answer, and
doesn't pass here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from broker.exchange.context import AnswerBuffers, Context
from broker.exchange.request_times import RequestTimes

Interceptor: TypeAlias = Callable[[Context, AnswerBuffers], AnswerBuffers]
"""(context, answer) → the answer to send; nearly always the same answer."""


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
        self._interceptors = tuple(added for added in self._interceptors if added != interceptor)

    def finish(self, context: Context, answer: AnswerBuffers) -> AnswerBuffers:
        """Returns the answer to send, after the interceptors."""
        self.times.answered(context)
        for interceptor in self._interceptors:
            answer = interceptor(context, answer)
        return answer
