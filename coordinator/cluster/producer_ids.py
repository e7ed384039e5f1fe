"""Allocates producer ids from blocks that only this broker has (KIP-730; Kafka's RPCProducerIdManager)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1_000
"""Number of ids in a block, for which the log gets one record. The unused ids of a block are lost when the broker
stops."""


class ProducerIdBlock(NamedTuple):
    """A block of producer ids that only this broker has."""

    first: int
    size: int = BLOCK_SIZE


class ProducerIdPool:
    """Allocates the ids of a block one by one, and requests the next block when it is used up."""

    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0

    async def stock(self) -> None:
        """Returns once an id is available. Raises KafkaError."""
        while self._next == self._end:
            block = await self._allocate()
            if self._next == self._end:  # otherwise another caller got a block meanwhile, and this block is discarded
                self._next, self._end = block.first, block.first + block.size

    def take(self) -> int:
        """Returns a producer id that was never allocated before. Raises COORDINATOR_LOAD_IN_PROGRESS if none is
        available.
        """
        if self._next == self._end:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ("the next block of producer ids has not arrived yet")
            )
        self._next += 1
        return self._next - 1

    async def next_id(self) -> int:
        """Returns a producer id that was never allocated before; waits for a block if needed. Raises KafkaError."""
        await self.stock()
        return self.take()
