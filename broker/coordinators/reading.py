"""What a shard is loaded from: its partition's records, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from broker.replica.partition import READ_UNCOMMITTED, Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.types import Buffer

PIECE_BYTES = 64 * 1024
"""How much is loaded without looking whether a client waits: some 1,000 records, 10 ms."""


async def committed(partition: Partition) -> AsyncIterator[Buffer]:
    """The log from its start to the high watermark, with a turn of the event loop between pieces."""
    offset = partition.log_start_offset
    while offset < partition.high_watermark:
        fetched = partition.fetch(offset, PIECE_BYTES, READ_UNCOMMITTED, True)
        for part in fetched.read.parts:
            for _, header in batch.iter_batches(part):
                offset = header.next_offset
            yield part
        if not fetched.read.size_bytes:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: nothing to read at {offset}")
        await asyncio.sleep(0)
