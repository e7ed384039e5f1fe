"""Lets a coroutine wait for partitions; parked requests wait without a coroutine."""

from __future__ import annotations

import asyncio

from broker.clock import Deadline
from broker.replica.partition import Partition
from broker.replica.waiter import Waiter


class Sleeper(Waiter):
    """A waiter that a coroutine awaits until partitions wake it."""

    __slots__ = ("_appends", "_watched", "woken")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        super().__init__(missing_bytes, committed_only=committed_only)
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watched: list[Partition] = []
        self._appends = False

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)

    def watch(self, partitions: list[Partition], *, appends: bool = False) -> None:
        """Lets these partitions wake it: at commits, or already at appends."""
        self._watched, self._appends = partitions, appends
        for partition in partitions:
            if appends:
                partition.append_waiters[self] = None
            else:
                partition.add_waiter(self)

    def unwatch(self) -> None:
        """Stops all partitions from waking it."""
        for partition in self._watched:
            (partition.append_waiters if self._appends else partition.waiters).pop(self, None)

    async def woken_until(self, deadline: Deadline) -> None:
        """Returns once a watched partition has woken it, or at the deadline."""
        timer = deadline.call(self.wake)
        try:
            await self.woken
        finally:
            timer.cancel()
