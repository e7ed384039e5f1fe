"""The truncation of a follower's log in a thread, and the work that waits for its end.

Meanwhile the partition remains a follower, and can be neither appended to nor read. The next role that the metadata
assigns waits, and so does other work on the log.

Source: kafka.cluster.Partition.truncateTo and its lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coordinator.replication.roles import Role


class Truncation:
    """A truncation in progress."""

    __slots__ = ("_done", "_then", "next_role")

    def __init__(self) -> None:
        self.next_role: tuple[Role, int] | None = None
        """The newest role that was assigned meanwhile, and its time in ms."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._then: list[Callable[[], None]] = []

    def defer(self, role: Role, now_ms: int) -> None:
        """Defers the role until the truncation ends; it replaces an earlier deferred role."""
        if self.next_role is None or role.partition_epoch >= self.next_role[0].partition_epoch:
            self.next_role = role, now_ms

    def then(self, work: Callable[[], None]) -> None:
        """Calls `work` after the truncation, in the order of the calls of `then`."""
        self._then.append(work)

    def end(self, error: BaseException | None) -> None:
        """Ends the truncation, and lets its waiters continue."""
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
            self._done.exception()  # the coroutine that began it may be gone
        for work in self._then:
            work()

    async def over(self) -> None:
        """Returns once the truncation is over; raises the thread's error. Cancelling it does not stop the thread."""
        await asyncio.shield(self._done)


def after_truncation(truncation: Truncation | None, work: Callable[[], None]) -> None:
    """Calls `work` now, or once no thread truncates the log."""
    if truncation is None:
        work()
    else:
        truncation.then(work)
