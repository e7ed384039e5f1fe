"""Eager coroutines: they run at once up to their first wait, without a task.

Most handlers can answer at once, and a task for each would cost more than the rest of a small request. Python 3.12 has
this as `asyncio.eager_task_factory`. `Running` (pending.py) continues a handler that waits, also without a task: no
handler may call what needs the current task, such as `asyncio.timeout`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final, Generic, TypeVar

Result = TypeVar("Result")


class Waiting(Generic[Result]):
    """A coroutine that has started and is waiting. Await it once to continue it."""

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Result], awaited: object) -> None:
        """`awaited` is the future that the coroutine yielded to the event loop, or None if it only yielded its turn."""
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Result]:
        coroutine, awaited = self._coroutine, self._awaited
        while True:
            try:
                try:
                    sent = yield awaited
                except GeneratorExit:  # it will never be awaited again; the coroutine may be closed already
                    coroutine.close()
                    raise
                except BaseException as error:  # the coroutine must see a cancellation
                    awaited = coroutine.throw(error)
                else:
                    awaited = coroutine.send(sent)
            except StopIteration as ended:
                result: Result = ended.value
                return result


def begin(coroutine: Coroutine[Any, Any, Result]) -> Result | Waiting[Result]:
    """Runs the coroutine up to its first wait. Returns its result, or raises its error, if it ends before; otherwise
    returns the suspended coroutine.
    """
    try:
        awaited: Final = coroutine.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    return Waiting(coroutine, awaited)
