"""Reads the records that a shard is loaded from, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncIterator

from broker.clock import next_turn
from broker.replica.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.types import Buffer

PIECE_BYTES = 64 * 1024
"""Bytes that are loaded in one turn of the event loop: about 1,000 records, 10 ms."""


async def everything(partition: Partition) -> AsyncIterator[Buffer]:
    """Yields the log from its start to its end, with a turn of the event loop between pieces.

    The end may be beyond the high watermark that a new leader knows from its time as a follower: the previous leader
    may have acknowledged these records, and this leader writes after them (CoordinatorLoaderImpl).
    """
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        read = partition.read_all(offset, PIECE_BYTES)
        for part in read.parts:
            for _, header in batch.iter_batches(part):
                offset = header.next_offset
            yield part
        if not read.size_bytes:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: no batch can be read at {offset}")
        await next_turn()
