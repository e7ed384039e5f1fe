"""Time that tests can advance: a clock ahead of the machine's, and an event loop whose timers follow it.

The loop makes every timer of the process: those of the clock, of `asyncio.sleep` and of `asyncio.timeout`. A journey
(an advance of time) runs them in the order of their times, and waits for the work of each before the clock moves on.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import Final, TypeVar, TypeVarTuple, cast

import uvloop

from broker.clock import NS_PER_MS, TIMER_RESOLUTION_NS, SystemClock, Timer, next_turn

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

NS_PER_S: Final = 1_000_000_000

LATE_SHARE: Final = 20
"""Divisor of the time travelled so far; the quotient is the maximum lateness of a journey's timers. Without it a job
that runs every second would run 600,000 times in a week; with it, about a hundred times."""

QUIET_TURNS: Final = 2
"""Turns of the loop without a new callback after which a timer's work is done, or waits for a thread, a socket or time.
One turn may run a socket's callback."""

MAX_TURNS: Final = 1_000
"""Maximum number of turns to wait for a timer's work, because busy clients can keep the loop running forever."""

MAX_THREAD_WAIT_S: Final = 10.0
"""Longest wait for a timer's work in threads, in the machine's time, before the clock moves on."""

MIN_CANCELLED: Final = 1_000
"""Minimum number of cancelled timers that are worth removing."""


async def nothing_more() -> None:
    """Does nothing at the end of a journey."""


class TravellingClock:
    """A `broker.clock.Clock` that is ahead of the machine's by the sum of its journeys."""

    def __init__(self) -> None:
        self._system = SystemClock()
        self.ahead_ns = 0

    def now_ms(self) -> int:
        return self._system.now_ms() + self.ahead_ns // NS_PER_MS

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // NS_PER_MS

    def monotonic_ns(self) -> int:
        return self._system.monotonic_ns() + self.ahead_ns

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self.call_after(max(when_ms - self.now_ms(), 0), then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, then)

    def go_on_to(self, monotonic_ns: int) -> None:
        """Advances to a time; a time in the past changes nothing."""
        self.ahead_ns += max(monotonic_ns - self.monotonic_ns(), 0)


class TravellingLoop(uvloop.Loop):
    """An event loop whose timers follow a TravellingClock."""

    def __init__(self, clock: TravellingClock) -> None:
        self.clock = clock
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._cancelled = 0
        """Number of timers cancelled since the last removal."""
        self._alarm: asyncio.TimerHandle | None = None
        """The machine's timer for the first timer of this loop."""
        self._alarm_s = 0.0
        self._callbacks = 0
        """Number of callbacks scheduled so far."""
        self._in_threads: set[asyncio.Future[object]] = set()
        self._unending: set[asyncio.Future[object]] = set()
        """Work in threads that a journey no longer waits for."""
        self.is_travelling = False
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()
        super().__init__()

    # The event loop's public methods

    def time(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_S

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + max(delay, 0), callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        self._arm()
        return timer

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        self._callbacks += 1
        return super().call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # a future, whatever uvloop's stub says
        self, executor: Executor | None, func: Callable[[*Arguments], T], *args: *Arguments
    ) -> asyncio.Future[T]:
        future = cast("asyncio.Future[T]", super().run_in_executor(executor, func, *args))
        self._in_threads.add(cast("asyncio.Future[object]", future))
        future.add_done_callback(self._left_thread)
        return future

    def _left_thread(self, future: asyncio.Future[T]) -> None:
        ended = cast("asyncio.Future[object]", future)
        self._in_threads.discard(ended)
        self._unending.discard(ended)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leaves the cancelled timer in the heap, where it is skipped. Removes all cancelled timers once they are the
        majority."""
        self._cancelled += 1
        if self._cancelled >= MIN_CANCELLED and 2 * self._cancelled > len(self._timers):
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    # The machine's time

    def _arm(self) -> None:
        """Sets the machine's timer to the first timer of this loop, except during a journey."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if self.is_travelling or not self._timers:
            return
        when = self._timers[0][0]
        if self._alarm is not None:
            if self._alarm_s <= when:
                return
            self._alarm.cancel()
        self._alarm_s = when
        self._alarm = super().call_later(max(when - self.time(), 0), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self.is_travelling:
            return
        due_s = self.time() + TIMER_RESOLUTION_NS / NS_PER_S
        for timer in self._taken(due_s):
            if not timer.cancelled():
                timer._run()
        self._arm()

    def _taken(self, until_s: float) -> list[asyncio.TimerHandle]:
        """Removes and returns the timers that are due at `until_s`, in the order of their times."""
        taken: list[asyncio.TimerHandle] = []
        while self._timers and self._timers[0][0] <= until_s:
            taken.append(heapq.heappop(self._timers)[2])
        return taken

    # Journeys

    async def travel(self, distance_ms: int, at_end: Callable[[], Awaitable[None]] = nothing_more) -> int:
        """Advances time by `distance_ms` and runs all timers that become due, then `at_end`. Returns the number of
        timers."""
        async with self._turn:  # journeys run one after another
            self.is_travelling = True
            self._arrived.clear()
            try:
                count = await self._travel(distance_ms)
                await at_end()
                return count
            finally:
                self.is_travelling = False
                self._arrived.set()
                self._alarm_s = 0.0
                if self._alarm is not None:
                    self._alarm.cancel()
                    self._alarm = None
                self._arm()

    async def arrived(self) -> None:
        """Waits until no journey is in progress."""
        while self.is_travelling:
            await self._arrived.wait()

    async def _travel(self, distance_ms: int) -> int:
        begun_ns, count = self.clock.monotonic_ns(), 0
        ahead_at_end_ns = self.clock.ahead_ns + distance_ms * NS_PER_MS
        await self._settled()
        while True:
            now_ns, first_ns = self.clock.monotonic_ns(), self._first_ns()
            end_ns = now_ns - self.clock.ahead_ns + ahead_at_end_ns  # the machine's time also passes
            if first_ns is None or first_ns > end_ns:
                break
            step_ns = min(max(first_ns, now_ns + (now_ns - begun_ns) // LATE_SHARE), end_ns)
            for timer in self._taken(step_ns / NS_PER_S):
                if timer.cancelled():
                    continue
                self.clock.go_on_to(round(timer.when() * NS_PER_S))
                timer._run()
                count += 1
                await self._settled()
            self.clock.go_on_to(step_ns)
        self.clock.ahead_ns = ahead_at_end_ns
        return count

    def _first_ns(self) -> int | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return round(self._timers[0][0] * NS_PER_S) if self._timers else None

    async def _settled(self) -> None:
        """Waits until the started work is done, or waits for something other than this loop and its threads."""
        quiet = turns = 0
        while quiet < QUIET_TURNS and turns < MAX_TURNS:
            before = self._callbacks
            await next_turn()
            turns += 1
            quiet = quiet + 1 if self._callbacks - before <= 1 else 0  # one callback is this coroutine's own
            if quiet == QUIET_TURNS and self._in_threads - self._unending and await self._threads_went_on():
                quiet = 0

    async def _threads_went_on(self) -> bool:
        """Waits until one of the working threads ends. Returns False if none ends within MAX_THREAD_WAIT_S."""
        ended = self.create_future()

        def end(result: bool) -> None:
            if not ended.done():
                ended.set_result(result)

        alarm = super().call_later(MAX_THREAD_WAIT_S, end, False)
        watched = self._in_threads - self._unending
        for future in watched:
            future.add_done_callback(lambda _: end(True))
        try:
            went_on = bool(await ended)
            if not went_on:
                self._unending |= watched & self._in_threads
            return went_on
        finally:
            alarm.cancel()
