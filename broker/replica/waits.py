"""Lets a coroutine wait for a commit of a partition, or until no live replica has deleted records (KIP-107).

Source: kafka.cluster.Partition.lowWatermarkIfLeader and kafka.server.DelayedDeleteRecords.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from broker.replica.partition import Partition
from broker.replica.waiter import Waiter
from coordinator.replication.roles import Leading
from protocol.errors import ErrorCode, KafkaError

NO_APPEND: Final = 1 << 62
"""More bytes than can be appended while a request waits."""


async def committed(partition: Partition, offset: int, timeout_ms: int) -> None:
    """Returns once every record below the offset is committed. Raises the error of a failed commit, and
    REQUEST_TIMED_OUT."""
    if offset <= partition.high_watermark:
        return
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partition.when_committed(offset, partial(settle, done))
    await in_time(done, timeout_ms, f"{partition.name}: not committed up to {offset}")


async def in_time(done: asyncio.Future[None], timeout_ms: int, late: str) -> None:
    """Awaits a future for a time. Raises its error, and REQUEST_TIMED_OUT. `asyncio.timeout` would need a task, and the
    coroutine of a request may have none (eager.py)."""
    message = f"{late} within {timeout_ms} ms"
    expire = partial(settle, done, KafkaError(ErrorCode.REQUEST_TIMED_OUT, message))
    timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, expire)
    try:
        await done
    finally:
        timer.cancel()


def settle(done: asyncio.Future[None], error: KafkaError | None) -> None:
    """Completes a future with the outcome of a commit: None or the error. Does nothing if the future is done."""
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def low_watermark(partition: Partition) -> int:
    """Returns the offset below which no live replica has records, as a leader knows it."""
    role, offset = partition.role, partition.log_start_offset
    return role.low_watermark(offset, partition.rules) if isinstance(role, Leading) else offset


class LowWatermarkWaiter(Waiter):
    """Waits until the low watermark reaches an offset, or another broker leads the partition."""

    __slots__ = ("_offset", "_partition", "reached")

    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__(NO_APPEND)
        self._partition = partition
        self._offset = offset
        self.reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wake()

    def wake(self) -> None:
        is_over = not self._partition.leads or low_watermark(self._partition) >= self._offset
        if is_over and not self.reached.done():
            self.reached.set_result(None)


async def deleted_everywhere(partition: Partition, offset: int, timeout_ms: int) -> None:
    """Returns once the low watermark reaches the offset. Raises REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, or the error
    of a removed partition.
    """
    waiter = LowWatermarkWaiter(partition, offset)
    partition.append_waiters[waiter] = None
    try:
        await in_time(waiter.reached, timeout_ms, f"{partition.name}: not every live replica's log starts at {offset}")
    finally:
        partition.append_waiters.pop(waiter, None)
    if partition.gone:
        raise KafkaError(partition.gone)
    partition.check_leads()
