"""Keeps the processes of a cluster running, and stops them in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from broker.clock import Clock
from broker.logging import get_logger
from programs.cluster.plan import NodePlan
from programs.cluster.process import ChildProcess, describe_status
from protocol.backoff import Backoff

STEADY_MS: Final = 30_000
"""Run time after which a process's next failure counts as its first."""

RESTARTS: Final = Backoff(initial_ms=500, max_ms=10_000)
"""The pauses before a process is started again, so that a process which dies at once doesn't keep a core busy."""

STOP_WITHIN_S: Final = 60.0
"""Time for the brokers' controlled shutdown, and for the controller's after it, before they are killed."""

FAILED: Final = 1
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

logger = get_logger("cluster")


def say(line: Callable[..., None], event: str, **fields: object) -> None:
    """Logs a line; the cluster continues if the terminal is gone."""
    with suppress(OSError):
        line(event, **fields)


Start = Callable[[NodePlan], Awaitable[ChildProcess]]


class Pauses(NamedTuple):
    """The times of a supervisor; tests use shorter times."""

    restarts: Backoff = RESTARTS
    steady_ms: int = STEADY_MS
    stop_within_s: float = STOP_WITHIN_S


PAUSES: Final = Pauses()


class Supervisor:
    """Runs controllers and brokers until a signal. Use it once: `await Supervisor(…).run()`."""

    def __init__(
        self, plans: Sequence[NodePlan], start: Start, clock: Clock, draw: Callable[[], float], pauses: Pauses = PAUSES
    ) -> None:
        """`start` starts the process of a node; `draw` returns random numbers from 0 up to 1."""
        self._plans = plans
        self._start = start
        self._clock = clock
        self._draw = draw
        self._pauses = pauses
        self._stop = asyncio.Event()
        self._kill = asyncio.Event()
        self._running: dict[str, ChildProcess] = {}
        self._addresses: dict[str, str] = {}
        self._has_been_ready = False
        self._exit_code = 0

    async def run(self) -> int:
        """Runs until all processes have ended. Returns the exit code: 1 if a process couldn't start."""
        keeping = [asyncio.create_task(self._keep(plan)) for plan in self._plans]
        for task in keeping:
            task.add_done_callback(lambda _: self._stop.set())  # a task ends before the stop only through a bug
        await self._stop.wait()
        await self._stop_all()
        await asyncio.gather(*keeping)
        return self._exit_code

    def signalled(self, number: signal.Signals) -> None:
        """Stops all processes in order; the second call kills them."""
        if not self._stop.is_set():
            say(
                logger.info,
                "stopping: brokers first, then the controllers; a second signal kills all",
                signal=number.name,
            )
            self._stop.set()
        elif not self._kill.is_set():
            say(logger.warning, "killing all processes", signal=number.name)
            self._kill.set()

    async def _keep(self, plan: NodePlan) -> None:
        """Runs a node's process, and starts it again until the cluster stops."""
        failures = 0
        while not self._stop.is_set():
            began_ms = self._clock.monotonic_ms()
            reason, status = await self._run_once(plan)
            if self._stop.is_set():
                return
            if not self._has_been_ready and status > 0:
                self._fail(plan, reason)
                return
            failures = 1 if self._clock.monotonic_ms() - began_ms >= self._pauses.steady_ms else failures + 1
            delay_ms = self._pauses.restarts.delay_ms(failures, self._draw())
            say(logger.warning, "process ended; starting it again", process=plan.name, reason=reason, after_ms=delay_ms)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_ms / 1000)

    async def _run_once(self, plan: NodePlan) -> tuple[str, int]:
        """Returns how the process ended, and its status."""
        try:
            process = await self._start(plan)
        except OSError as error:
            return f"cannot be started: {error}", FAILED
        self._running[plan.name] = process
        say(logger.info, "process started", process=plan.name, pid=process.pid)
        if self._stop.is_set():  # the signal came during the start: the process has no state to save yet
            process.signal(signal.SIGKILL)
        process.address.add_done_callback(lambda address: self._ready(plan, address))
        status = await process.ended()
        del self._running[plan.name]
        return describe_status(status), status

    def _ready(self, plan: NodePlan, address: asyncio.Future[str]) -> None:
        if address.cancelled():
            return
        self._addresses[plan.name] = address.result()
        if self._has_been_ready:
            say(logger.info, "process is ready again", process=plan.name, address=address.result())
        elif len(self._addresses) == len(self._plans):
            self._has_been_ready = True
            brokers = ",".join(self._addresses[node.name] for node in self._plans if not node.is_controller)
            with suppress(OSError):
                sys.stdout.write(f"ready {brokers}\n")
                sys.stdout.flush()

    def _fail(self, plan: NodePlan, reason: str) -> None:
        """Stops the cluster, because a process failed before the cluster was ever ready: it would fail again."""
        say(logger.error, "cannot start", process=plan.name, reason=reason)
        self._exit_code = FAILED
        self._stop.set()

    async def _stop_all(self) -> None:
        """Stops the brokers, which need a controller for their shutdown, and then the controllers."""
        for is_controller in (False, True):
            await self._stop_some([plan.name for plan in self._plans if plan.is_controller is is_controller])

    async def _stop_some(self, names: Sequence[str]) -> None:
        processes = [self._running[name] for name in names if name in self._running]
        for process in processes:
            process.signal(signal.SIGTERM)
        ending = [asyncio.create_task(process.ended()) for process in processes]
        killed = asyncio.create_task(self._kill.wait())
        ended = asyncio.gather(*ending)
        await asyncio.wait((ended, killed), timeout=self._pauses.stop_within_s, return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        for process, task in zip(processes, ending, strict=True):
            if not task.done():
                say(logger.warning, "process is killed", process=process.name, reason=self._why_killed())
                process.signal(signal.SIGKILL)
        await ended

    def _why_killed(self) -> str:
        if self._kill.is_set():
            return "a second signal"
        return f"it did not stop within {self._pauses.stop_within_s:g} s"
