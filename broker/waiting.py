"""Requests that wait for a log to grow: parked once, woken by appends, never polled.

Kafka's DelayedFetch in its purgatory, without the purgatory: the parked request hangs on the partitions that it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.replica.partition import Partition


class Waiter:
    """Waits until `missing_bytes` more were appended to its partitions, or one of them needs attention.

    With `committed_only` what an open transaction holds back does not count; its end calls for attention.
    """

    __slots__ = ("committed_only", "missing_bytes", "wakened")

    def __init__(self, missing_bytes: int, *, committed_only: bool = False) -> None:
        self.missing_bytes = missing_bytes
        self.committed_only = committed_only
        self.wakened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def appended(self, size_bytes: int) -> None:
        self.missing_bytes -= size_bytes
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        if not self.wakened.done():
            self.wakened.set_result(None)


async def wait_for_bytes(
    partitions: Iterable[Partition], missing_bytes: int, timeout_s: float, *, committed_only: bool = False
) -> bool:
    """Returns once the bytes are there (True) or the time is up (False)."""
    waiter = Waiter(missing_bytes, committed_only=committed_only)
    watched = tuple(partitions)
    timer = asyncio.get_running_loop().call_later(timeout_s, waiter.wake)
    for partition in watched:
        partition.waiters.add(waiter)
    try:
        await waiter.wakened
    finally:
        timer.cancel()
        for partition in watched:
            partition.waiters.discard(waiter)
    return waiter.missing_bytes <= 0
