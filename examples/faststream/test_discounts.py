from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from discounts import DISCOUNTED, ORDERS, make_app

from odradek.testing import AsyncBroker, Broker


@pytest.fixture
async def broker() -> AsyncIterator[AsyncBroker]:
    async with Broker() as broker:
        for topic in (ORDERS, DISCOUNTED):
            await broker.create_topic(topic)
        yield broker


async def discounted(broker: AsyncBroker, *amounts: int) -> list[int]:
    """What becomes of orders."""
    async with make_app(broker.bootstrap) as app:
        await app.start()
        for amount in amounts:
            await app.publish(amount, ORDERS)
        await broker.wait_for_lag("discounts")
    return [int(record.value or b"") for record in await broker.records(DISCOUNTED)]


async def test_a_tenth_is_taken_off(broker: AsyncBroker) -> None:
    assert await discounted(broker, 10, 200) == [9, 180]


async def test_a_coordinator_that_loads_is_waited_for(broker: AsyncBroker) -> None:
    async with broker.fault(coordinator="loading", group="discounts", times=3) as fault:
        assert await discounted(broker, 10) == [9]
    assert fault.fired == 3
