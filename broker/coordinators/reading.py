"""What a shard is loaded from: its partition's records, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from broker.replica.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.types import Buffer

PIECE_BYTES = 64 * 1024
"""How much is loaded without looking whether a client waits: some 1,000 records, 10 ms."""


async def everything(partition: Partition) -> AsyncIterator[Buffer]:
    """The log from its start to its end, with a turn of the event loop between pieces.

    Beyond the high watermark too, which a new leader has from its time as a follower: what lies there may have been
    acknowledged by the leader before, and is what this one writes on from (CoordinatorLoaderImpl).
    """
    offset = partition.log_start_offset
    while offset < partition.log_end_offset:
        read = partition.read_all(offset, PIECE_BYTES)
        for part in read.parts:
            for _, header in batch.iter_batches(part):
                offset = header.next_offset
            yield part
        if not read.size_bytes:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: nothing to read at {offset}")
        await asyncio.sleep(0)
