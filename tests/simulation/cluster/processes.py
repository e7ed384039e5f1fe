"""Processes on one virtual event loop: each has its tasks, timers and callbacks, and may die between any two of them.

A callback belongs to the process in whose context it was scheduled. When a process dies, none of its callbacks run any
more, and nothing cleans up after it, as after a kill -9. A stopped process (SIGSTOP) does nothing until it continues;
then everything that has become due runs at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import os
import random
from asyncio import Handle, TimerHandle
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, TypeVarTuple

from tests.simulation.faulty_disk import Crash
from tests.simulation.virtual_time import VirtualLoop

if TYPE_CHECKING:
    import socket

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WORK_S = 0.002
"""The average duration of a thread's work."""


class Process:
    """One run of a program on a host; `dies` is called once."""

    def __init__(self, host: str, loop: ClusterLoop, dies: Callable[[Process], None] = lambda _: None) -> None:
        self.host = host
        self.is_dead = False
        self._loop = loop
        self._dies = dies
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)
        self._remains: list[object] = []
        """The callbacks of a dead process. They are freed only after the simulation, because their destructors could
        have effects."""
        self.held: list[Handle] | None = None
        """The handles that are due while the process is stopped, in order; None while it runs."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a coroutine in the process."""
        return self._loop.create_task(work, context=self.context)

    def die(self) -> None:
        """Ends the process at once."""
        if self.is_dead:
            return
        self.is_dead = True
        self._loop.network.died(self)
        self._bury()
        self._dies(self)

    def stop(self) -> None:
        """Stops the process until `go_on`."""
        if not self.is_dead and self.held is None:
            self.held = self._loop.hold(self)

    def go_on(self) -> None:
        """Runs at once everything that has become due meanwhile."""
        held, self.held = self.held, None
        if held is not None and not self.is_dead:
            self._loop.release(held)

    def bury(self, handle: Handle) -> None:
        """Cancels the callbacks that are scheduled for a process that has ended."""
        self._remains.append((handle._callback, handle._args))  # type: ignore[attr-defined]
        handle.cancel()

    def _bury(self) -> None:
        """Cancels the scheduled callbacks, now and again one turn later, because a running callback may schedule
        more."""
        held, self.held = self.held, None
        self._remains += [(handle._callback, handle._args) for handle in held or ()]  # type: ignore[attr-defined]
        if taken := self._loop.take_back(self):
            self._remains += taken
            self._loop.call_soon(self._bury, context=self._loop.root)


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current() -> Process:
    """Returns the process whose code is running."""
    process = PROCESS.get()
    assert process is not None, "this code belongs to no process"
    return process


class Sockets(Protocol):
    """The parts of the network that a loop uses."""

    async def accept(self, process: Process) -> Any:
        """Returns the process's end of the next connection to its host."""

    async def connect(self, process: Process, factory: Callable[[], Any], host: str) -> Any:
        """Returns a transport and its protocol. Raises OSError."""

    def died(self, process: Process) -> None:
        """Ends the connections of a process."""


class ClusterLoop(VirtualLoop):
    """An event loop with the simulated network's sockets. Its threads are callbacks that run a moment later."""

    network: Sockets

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self.dice = dice
        self.root = contextvars.copy_context()
        self._nothing = Handle(lambda: None, (), self)
        self._nothing.cancel()
        self.set_exception_handler(lambda *_: None)

    async def sock_accept(self, sock: socket.socket) -> Any:
        sock.close()
        stream = await self.network.accept(current())
        return stream, stream.get_extra_info("peername")

    async def connect_accepted_socket(self, factory: Any, sock: Any, **_: Any) -> Any:  # type: ignore[override]
        return sock, sock.begin(factory())

    async def create_connection(self, factory: Any, host: str, port: int, **_: Any) -> Any:  # type: ignore[override]
        return await self.network.connect(current(), factory, host)

    def run_in_executor(self, _: Any, work: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[override]
        """Runs work like a thread, but at a single moment."""
        done = self.create_future()

        def do() -> None:
            try:
                result = work(*arguments)
            except Crash:
                pass  # there is nobody left to tell
            except Exception as error:
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(result)

        self.call_later(self.dice.expovariate(1 / WORK_S), do)
        return done

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> Handle:
        """Works like a loop's call_soon, but calls nothing for a dead process, for example by another process's
        future."""
        if self.is_closed():
            return self._nothing  # of a coroutine that the run has left behind, which is collected
        handle = super().call_soon(callback, *args, context=context)
        process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is not None:
            if process.is_dead:
                process.bury(handle)
            elif process.held is not None:
                self._ready.pop()  # type: ignore[attr-defined]
                process.held.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        """Works like a loop's call_at, but delays the timers of a stopped process until it continues."""
        if self.is_closed():
            return TimerHandle(when, callback, args, self, context)
        handle = super().call_at(when, callback, *args, context=context)
        process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is not None and process.held is not None:
            self._take_off(handle)
            process.held.append(handle)
        return handle

    def hold(self, process: Process) -> list[Handle]:
        """Removes everything that a process has scheduled from the loop, and returns it."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        held: list[Handle] = []
        for place, handle in enumerate(ready):  # the loop may be in the midst of them: none goes
            if handle._context.get(PROCESS) is process and not handle.cancelled():
                held.append(handle)
                ready[place] = self._nothing
        timers = [one for one in scheduled if one._context.get(PROCESS) is process]
        for timer in timers:
            self._take_off(timer)
        return held + sorted(timers)

    def _take_off(self, timer: TimerHandle) -> None:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        scheduled[:] = [one for one in scheduled if one is not timer]
        heapq.heapify(scheduled)

    def release(self, held: list[Handle]) -> None:
        """Schedules the callbacks again that `hold` has removed."""
        for handle in held:
            if isinstance(handle, TimerHandle):
                heapq.heappush(self._scheduled, handle)  # type: ignore[attr-defined]
            else:
                self._ready.append(handle)  # type: ignore[attr-defined]

    def take_back(self, process: Process) -> list[object]:
        """Cancels everything that a process has scheduled, and returns it."""
        taken: list[object] = []
        handles: list[Handle] = [*self._ready, *self._scheduled]  # type: ignore[attr-defined]
        for handle in handles:
            if not handle.cancelled() and handle._context.get(PROCESS) is process:  # type: ignore[attr-defined]
                taken.append((handle._callback, handle._args))  # type: ignore[attr-defined]
                handle.cancel()
        return taken


def simulate(seed: int, main: Callable[[ClusterLoop], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine to its end in virtual time, with all randomness from the seed."""
    dice = Random(seed)
    urandom, state = os.urandom, random.getstate()
    os.urandom = dice.randbytes
    random.seed(seed)
    loop = ClusterLoop(dice)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        os.urandom = urandom
        random.setstate(state)
        _close(loop)


def _close(loop: ClusterLoop) -> None:
    """Ends all remaining tasks silently."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    with suppress(BaseException):
        loop.run_until_complete(asyncio.wait(tasks, timeout=1)) if tasks else None
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
    loop.close()
