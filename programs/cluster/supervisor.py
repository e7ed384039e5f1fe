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
from broker.peers.backoff import Backoff
from programs.cluster.plan import NodePlan
from programs.cluster.process import ChildProcess, describe_status

STEADY_MS: Final = 30_000
"""A process that ran this long had a good start: its next failure is counted as the first."""

RESTARTS: Final = Backoff(initial_ms=500, max_ms=10_000)
"""The pauses before a process is started again: what dies at once must not keep a core busy."""

STOP_WITHIN_S: Final = 60.0
"""The time that brokers have for a controlled shutdown, and the controller after them, before they are killed."""

FAILED: Final = 1
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = get_logger("cluster")


def say(line: Callable[..., None], event: str, **fields: object) -> None:
    """Logs, and goes on where the terminal is gone: the cluster is not."""
    with suppress(OSError):
        line(event, **fields)


Start = Callable[[NodePlan], Awaitable[ChildProcess]]


class Pauses(NamedTuple):
    """The times of a supervisor; tests have shorter ones."""

    restarts: Backoff = RESTARTS
    steady_ms: int = STEADY_MS
    stop_within_s: float = STOP_WITHIN_S


PAUSES: Final = Pauses()


class Supervisor:
    """Runs a controller and brokers until a signal. Use it once: `await Supervisor(…).run()`."""

    def __init__(
        self,
        plans: Sequence[NodePlan],
        start: Start,
        clock: Clock,
        draw: Callable[[], float],
        pauses: Pauses = PAUSES,
    ) -> None:
        """`start` starts the process of a node; `draw` gives random numbers from 0 up to 1."""
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
        """Returns the exit code once all have ended: 1 where one could not start."""
        keeping = [asyncio.create_task(self._keep(plan)) for plan in self._plans]
        for task in keeping:
            task.add_done_callback(lambda _: self._stop.set())  # it ends before the rest by a fault of ours alone
        await self._stop.wait()
        await self._stop_all()
        await asyncio.gather(*keeping)
        return self._exit_code

    def signalled(self, number: signal.Signals) -> None:
        """Stops all in order; called again, kills all."""
        if not self._stop.is_set():
            say(log.info, "stopping: brokers first, then the controller; once more kills", signal=number.name)
            self._stop.set()
        elif not self._kill.is_set():
            say(log.warning, "killing all processes", signal=number.name)
            self._kill.set()

    async def _keep(self, plan: NodePlan) -> None:
        """Runs a node's process, again and again until the cluster stops."""
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
            say(log.warning, "process ended; starting it again", process=plan.name, reason=reason, after_ms=delay_ms)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_ms / 1000)

    async def _run_once(self, plan: NodePlan) -> tuple[str, int]:
        """Returns how the process ended, and its status."""
        try:
            process = await self._start(plan)
        except OSError as error:
            return f"cannot be started: {error}", FAILED
        self._running[plan.name] = process
        say(log.info, "process started", process=plan.name, pid=process.pid)
        if self._stop.is_set():  # the signal came while it was being started: it has nothing to lose yet
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
            say(log.info, "process is ready again", process=plan.name, address=address.result())
        elif len(self._addresses) == len(self._plans):
            self._has_been_ready = True
            brokers = ",".join(self._addresses[one.name] for one in self._plans if not one.is_controller)
            with suppress(OSError):
                sys.stdout.write(f"ready {brokers}\n")
                sys.stdout.flush()

    def _fail(self, plan: NodePlan, reason: str) -> None:
        """Gives up where a process ends by itself before the cluster has ever been ready: it would end again."""
        say(log.error, "cannot start", process=plan.name, reason=reason)
        self._exit_code = FAILED
        self._stop.set()

    async def _stop_all(self) -> None:
        """Stops the brokers, which need the controller for that, and then the controller."""
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
                say(log.warning, "process is killed", process=process.name, reason=self._why_killed())
                process.signal(signal.SIGKILL)
        await ended

    def _why_killed(self) -> str:
        if self._kill.is_set():
            return "a second signal"
        return f"it did not stop within {self._pauses.stop_within_s:g} s"
