"""A coroutine's wait for partitions, besides the parked requests, which wait without a coroutine."""

from __future__ import annotations

import asyncio

from broker.clock import Deadline
from broker.replica.partition import Partition
from broker.replica.waiter import Waiter


class Sleeper(Waiter):
    """A waiter that a coroutine awaits until partitions wake it."""

    __slots__ = ("woken",)

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)

    async def woken_by(self, partitions: list[Partition], deadline: Deadline) -> None:
        """Returns once one of the partitions wakes it, or at the deadline."""
        timer = deadline.call(self.wake)
        for partition in partitions:
            partition.add_waiter(self)
        try:
            await self.woken
        finally:
            timer.cancel()
            for partition in partitions:
                partition.waiters.pop(self, None)
