"""The low watermark of a partition: below it no live replica has records. It shows that a deletion is complete
(KIP-107).

Source: kafka.cluster.Partition.lowWatermarkIfLeader and kafka.server.DelayedDeleteRecords.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker.replica.partition import Partition
from broker.replica.waiter import Waiter
from coordinator.replication.roles import Leading
from protocol.errors import ErrorCode, KafkaError

NO_APPEND: Final = 1 << 62
"""More bytes than can be appended while a request waits."""


def low_watermark(partition: Partition) -> int:
    """Returns the low watermark; a follower's is its log start offset."""
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
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            await waiter.reached
    except TimeoutError:
        message = f"{partition.name}: not every live replica's log starts at {offset} within {timeout_ms} ms"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message) from None
    finally:
        partition.append_waiters.pop(waiter, None)
    if partition.gone:
        raise KafkaError(partition.gone)
    partition.check_leads()
