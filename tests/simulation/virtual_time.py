"""An event loop whose time passes only when nothing else is left to do: a minute of waiting takes no time."""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.clock import ManualClock
from tests.simulation.faulty_disk import Crash

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """A selector without sockets: waiting advances the time."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen again"
        self.passed_s += timeout
        return []


def unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignores a planted crash, which ends each task of the process that later uses the disk; no code is left to
    retrieve these errors. Logs all other unhandled errors."""
    if not isinstance(context.get("exception"), Crash):
        loop.default_exception_handler(context)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that is deterministic, as far as the code on it is."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.set_exception_handler(unhandled)

    def time(self) -> float:
        return self._virtual.passed_s

    async def sock_accept(self, sock: socket.socket) -> Any:
        """Waits forever: connections are simulated, and none arrives over a real socket."""
        sock.close()
        return await self.create_future()

    def remove_reader(self, fd: Any) -> bool:
        """Does nothing, because there are no readers."""
        return False


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def virtual_clock() -> ManualClock:
    """Returns the clock of such a loop."""
    return ManualClock(passed_ms=lambda: asyncio.get_running_loop().time() * 1000)


class InlineWorkers:
    """`broker.workers.Workers` without threads: work is done one turn of the loop later."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        def do() -> None:
            try:
                work()
            except Exception as error:  # after a crash there is nobody left to tell
                then(error)
            else:
                then(None)

        asyncio.get_running_loop().call_soon(do)

    async def call(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return work()

    def close(self) -> None:
        """Does nothing, because no work is ever in progress."""
