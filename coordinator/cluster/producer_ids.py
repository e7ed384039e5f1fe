"""Producer ids in blocks, each handed out once in the cluster's life (KIP-730; Kafka's ProducerIdControlManager)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from coordinator.cluster.brokers.heartbeat import check_broker_epoch
from coordinator.cluster.decided import Decided
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from protocol.metadata_records.settings import ProducerIdsRecord

BLOCK_SIZE = 1_000
"""One record in the log per so many producers; a stop loses what is left of a block."""

MAX_INT64 = (1 << 63) - 1


class ProducerIdBlock(NamedTuple):
    """Ids that are this broker's alone."""

    first: int
    size: int = BLOCK_SIZE


def allocate_producer_ids(image: Image, request: AllocateProducerIdsRequest) -> Decided[AllocateProducerIdsResponse]:
    """AllocateProducerIds: the next block is this broker's. Raises KafkaError(STALE_BROKER_EPOCH)."""
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    first = image.producer_ids.next_id
    if first > MAX_INT64 - BLOCK_SIZE:
        message = "every producer id has been handed out"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    record = ProducerIdsRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(
        error_code=ErrorCode.NONE, producer_id_start=first, producer_id_len=BLOCK_SIZE
    )
    return Decided([record], response)


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
