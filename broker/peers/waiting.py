"""Waits with a timeout, by the broker's clock."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from broker.clock import Clock

T = TypeVar("T")


async def done_by(clock: Clock, deadline_ms: int, future: asyncio.Future[T]) -> bool:
    """Waits until a future is done, or until `clock.monotonic_ms()` has reached the deadline. True if it is done; the
    future is neither cancelled nor read."""
    loop = asyncio.get_running_loop()
    while not future.done():
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            return False
        waiter: asyncio.Future[None] = loop.create_future()

        def wake(_: object = None, waiter: asyncio.Future[None] = waiter) -> None:
            if not waiter.done():
                waiter.set_result(None)

        timer = clock.call_at(clock.now_ms() + left_ms, wake)
        future.add_done_callback(wake)
        try:
            await waiter
        finally:
            timer.cancel()
            future.remove_done_callback(wake)
    return True


async def pause(clock: Clock, delay_ms: int) -> None:
    """Returns once the delay has passed; without a delay, in the next turn of the event loop."""
    if delay_ms <= 0:
        await asyncio.sleep(0)
        return
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await done_by(clock, clock.monotonic_ms() + delay_ms, never)


def retrieve(ended: asyncio.Future[T]) -> None:
    """Retrieves a future's exception, so that asyncio doesn't report it as unseen if no caller awaits it."""
    if not ended.cancelled():
        ended.exception()
