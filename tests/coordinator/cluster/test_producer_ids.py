"""Tests a broker's pool of producer ids."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.cluster.producer_ids import ProducerIdBlock, ProducerIdPool
from protocol.errors import ErrorCode, KafkaError


class Blocks:
    """A controller that allocates blocks of two ids once a test allows it."""

    def __init__(self) -> None:
        self.allocated = 0
        self.may = asyncio.Event()
        self.may.set()

    async def allocate(self) -> ProducerIdBlock:
        self.allocated += 1
        block = ProducerIdBlock(1_000 * self.allocated, 2)
        await self.may.wait()
        return block


async def test_the_next_block_is_requested_when_all_ids_of_a_block_are_taken() -> None:
    blocks = Blocks()
    pool = ProducerIdPool(blocks.allocate)
    assert [await pool.next_id() for _ in range(3)] == [1_000, 1_001, 2_000]
    assert blocks.allocated == 2


async def test_without_a_block_no_id_is_taken() -> None:
    pool = ProducerIdPool(Blocks().allocate)
    with pytest.raises(KafkaError) as caught:
        pool.take()
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await pool.stock()
    assert pool.take() == 1_000


async def test_requests_that_wait_for_a_block_at_the_same_time_get_different_ids() -> None:
    blocks = Blocks()
    blocks.may.clear()
    pool = ProducerIdPool(blocks.allocate)
    waiting = [asyncio.ensure_future(pool.next_id()) for _ in range(3)]
    await asyncio.sleep(0)
    blocks.may.set()
    assert len(set(await asyncio.gather(*waiting))) == 3
