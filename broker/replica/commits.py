"""Lets a coroutine wait for a commit of a partition."""

from __future__ import annotations

import asyncio
from functools import partial

from broker.replica.partition import Partition
from protocol.errors import ErrorCode, KafkaError


async def committed(partition: Partition, offset: int, timeout_ms: int) -> None:
    """Returns once every record below the offset is committed. Raises the error of a failed commit, and
    REQUEST_TIMED_OUT."""
    if offset <= partition.high_watermark:
        return
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partition.when_committed(offset, partial(settle, done))
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await done
    except TimeoutError:
        message = f"{partition.name}: not committed up to {offset} within {timeout_ms} ms"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message) from None


def settle(done: asyncio.Future[None], error: KafkaError | None) -> None:
    """Completes a future with the outcome of a commit: None or the error. Does nothing if the future is done."""
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
