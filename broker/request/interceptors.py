"""The last step of every answer before it is sent, from a fast path, a handler, a parked request, or an error.

Requests are counted and timed here by direct calls, which compiled code can resolve. Interceptors throttle or log: each
sees every answer once, with the context of its request. A request whose connection is closed has no answer, and doesn't
get here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from broker.request.context import AnswerBuffers, Context
from broker.request.request_times import RequestTimes

Interceptor: TypeAlias = Callable[[Context, AnswerBuffers], None]
"""Sees an answer, encoded."""


class Interceptors:
    """The interceptors of a broker's answers, in the order in which they are called."""

    __slots__ = ("_interceptors", "times")

    def __init__(self, times: RequestTimes) -> None:
        self.times = times
        self._interceptors: tuple[Interceptor, ...] = ()

    def add(self, interceptor: Interceptor) -> None:
        """Adds an interceptor, which sees every later answer."""
        self._interceptors = (*self._interceptors, interceptor)

    def finish(self, context: Context, answer: AnswerBuffers) -> AnswerBuffers:
        """Returns the answer, after the interceptors."""
        self.times.answered(context)
        for interceptor in self._interceptors:
            interceptor(context, answer)
        return answer
