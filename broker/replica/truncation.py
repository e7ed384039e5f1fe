"""A follower's log that is being cut by a thread, and what has to come after that.

Meanwhile the partition keeps its role, which is to follow: it is neither appended to nor read from. What the metadata
gives it, and who wants its log for something else, waits. Source: kafka.cluster.Partition.truncateTo and its lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.replica.roles import Role


class Truncation:
    """One that is under way."""

    __slots__ = ("_done", "_then", "next_role")

    def __init__(self) -> None:
        self.next_role: tuple[Role, int] | None = None
        """The newest that the partition was given meanwhile, and when."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._then: list[Callable[[], None]] = []

    def defer(self, role: Role, now_ms: int) -> None:
        """The partition takes the role over afterwards, unless it gets a newer one."""
        if self.next_role is None or role.partition_epoch >= self.next_role[0].partition_epoch:
            self.next_role = role, now_ms

    def then(self, work: Callable[[], None]) -> None:
        """Has `work` done afterwards, in the order of the calls."""
        self._then.append(work)

    def end(self, error: BaseException | None) -> None:
        """It is over: whoever waits goes on."""
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
            self._done.exception()  # who began it may be gone
        for work in self._then:
            work()

    async def over(self) -> None:
        """Returns when it is; raises what the thread did. A cancellation leaves the thread at its work."""
        await asyncio.shield(self._done)


def once_whole(truncation: Truncation | None, work: Callable[[], None]) -> None:
    """Has `work` done now, or when no thread is at the log any more."""
    if truncation is None:
        work()
    else:
        truncation.then(work)
