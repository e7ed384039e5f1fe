"""A request whose handler waits: the rest of its coroutine, as a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from protocol.errors import ProtocolError

if TYPE_CHECKING:
    from broker.network.connection import Answer


class Running:
    """Begun by the connection that waits for it, and taken back when that ends; like `waiting.Parked`, with a task."""

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
