"""The time, in one place: everything else takes the time as an argument, and pauses by the clock that it was given."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

NS_PER_MS: Final = 1_000_000


class Timer(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A source of time."""

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, as in records."""
        ...

    def monotonic_ms(self) -> int:
        """Returns milliseconds that only increase, for deadlines."""
        ...

    def monotonic_ns(self) -> int:
        """Returns nanoseconds that only increase, for the duration of requests."""
        ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop once `now_ms` has reached `when_ms`."""
        ...

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        """Calls `then` on the event loop after `delay_ms`, independent of changes of the time of day."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // NS_PER_MS

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // NS_PER_MS

    monotonic_ns = staticmethod(time.monotonic_ns)

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self.call_after(max(when_ms - self.now_ms(), 0), then)

    def call_after(self, delay_ms: float, then: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, then)


class Monotonic:
    """The monotonic time of a clock in place of its time of day, for an engine whose deadlines are in no record."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer:
        return self._clock.call_after(max(when_ms - self.now_ms(), 0), then)


async def done_by(clock: Clock, deadline_ms: int, future: asyncio.Future[T]) -> bool:
    """Waits until a future is done, or until `clock.monotonic_ms()` has reached the deadline. True if it is done; the
    future is neither cancelled nor read."""
    loop = asyncio.get_running_loop()
    while not future.done():
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            return False
        waiter: asyncio.Future[None] = loop.create_future()
        wake = partial(_wake, waiter)
        timer = clock.call_at(clock.now_ms() + left_ms, wake)
        future.add_done_callback(wake)
        try:
            await waiter
        finally:
            timer.cancel()
            future.remove_done_callback(wake)
    return True


def _wake(waiter: asyncio.Future[None], _: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def pause(clock: Clock, delay_ms: int) -> None:
    """Returns once the delay has passed; without a delay, in the next turn of the event loop."""
    if delay_ms <= 0:
        await next_turn()
        return
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await done_by(clock, clock.monotonic_ms() + delay_ms, never)


async def next_turn() -> None:
    """Returns in the next turn of the event loop, after the callbacks that are ready now."""
    await asyncio.sleep(0)
