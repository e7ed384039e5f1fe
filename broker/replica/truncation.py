"""The truncation of a follower's log by a thread, and the work that has to wait for its end.

Meanwhile the partition keeps its role, which is to follow: nobody appends to it or reads from it. The next role that
the metadata assigns waits, and so does other work on the log. Source: kafka.cluster.Partition.truncateTo and its lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.replica.roles import Role


class Truncation:
    """A truncation that is under way."""

    __slots__ = ("_done", "_then", "next_role")

    def __init__(self) -> None:
        self.next_role: tuple[Role, int] | None = None
        """The newest role that the partition was assigned meanwhile, and the time of that in ms."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._then: list[Callable[[], None]] = []

    def defer(self, role: Role, now_ms: int) -> None:
        """Has the partition take the role over afterwards, unless it is assigned a newer one."""
        if self.next_role is None or role.partition_epoch >= self.next_role[0].partition_epoch:
            self.next_role = role, now_ms

    def then(self, work: Callable[[], None]) -> None:
        """Calls `work` afterwards, in the order of the calls of this."""
        self._then.append(work)

    def end(self, error: BaseException | None) -> None:
        """Ends the truncation: whoever waits goes on."""
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
            self._done.exception()  # who began it may be gone
        for work in self._then:
            work()

    async def over(self) -> None:
        """Returns once the truncation is over; raises the thread's error. A cancellation does not stop the thread."""
        await asyncio.shield(self._done)


def after_truncation(truncation: Truncation | None, work: Callable[[], None]) -> None:
    """Calls `work` now, or once no thread truncates the log any more."""
    if truncation is None:
        work()
    else:
        truncation.then(work)
