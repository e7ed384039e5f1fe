"""The one way by which every answer leaves: from a short cut, a handler, a request that was parked, or an error.

Whoever counts, times, throttles or logs requests stands here, and sees each of them once, with its request's context
and its size. A connection that breaks off has no answer, and does not come by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from broker.exchange.context import Context, Sent

Watcher: TypeAlias = Callable[[Context, Sent], Sent]
"""(context, answer) → the answer that is sent instead of it; nearly always the same."""


class WayOut:
    """The watchers of a broker's answers, in their order. Without any, an answer passes as it is."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: tuple[Watcher, ...] = ()

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher, which sees every answer from now on."""
        self._watchers = (*self._watchers, watcher)

    def finish(self, context: Context, answer: Sent) -> Sent:
        for watcher in self._watchers:
            answer = watcher(context, answer)
        return answer
