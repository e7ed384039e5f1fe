"""Producer ids, out of blocks that are this broker's alone (KIP-730; Kafka's RPCProducerIdManager)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1_000
"""One record in the log per so many producers; a stop loses what is left of a block."""


class ProducerIdBlock(NamedTuple):
    """Ids that are this broker's alone."""

    first: int
    size: int = BLOCK_SIZE


class ProducerIdPool:
    """Hands the ids of a block out one by one, and asks for the next block when it is empty."""

    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0

    async def stock(self) -> None:
        """See to it that there is an id to take now. Raises KafkaError."""
        while self._next == self._end:
            block = await self._allocate()
            if self._next == self._end:  # else another waiter's block came first, and this one is given up
                self._next, self._end = block.first, block.first + block.size

    def take(self) -> int:
        """A producer id that nobody had. Raises COORDINATOR_LOAD_IN_PROGRESS when none is in stock."""
        if self._next == self._end:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the next block of producer ids is on its way")
        self._next += 1
        return self._next - 1

    async def next_id(self) -> int:
        """A producer id that nobody had. Raises KafkaError."""
        await self.stock()
        return self.take()
