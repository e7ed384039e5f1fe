from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer
from balances import BALANCES, Balances

from odradek.testing import AsyncBroker, Broker


@pytest.fixture
async def broker() -> AsyncIterator[AsyncBroker]:
    async with Broker() as broker:
        await broker.create_topic(BALANCES, partitions=2, configs={"cleanup.policy": "compact"})
        yield broker


async def book(broker: AsyncBroker, account: str, balance: int | None) -> None:
    async with AIOKafkaProducer(**broker.client_kwargs()) as producer:
        await producer.send_and_wait(BALANCES, None if balance is None else b"%d" % balance, key=account.encode())


async def test_the_newest_balance_counts(broker: AsyncBroker) -> None:
    async with Balances(broker.client_kwargs()) as balances:
        for balance in (1, 2, 3):
            await book(broker, "anna", balance)
        await broker.wait_for_lag("balances")
        assert balances.of == {"anna": 3}


async def test_two_instances_share_the_accounts(broker: AsyncBroker) -> None:
    async with Balances(broker.client_kwargs()) as one, Balances(broker.client_kwargs()) as other:
        await broker.wait_for_group("balances", members=2)
        accounts = [f"account-{number}" for number in range(20)]
        for account in accounts:
            await book(broker, account, 1)
        await broker.wait_for_lag("balances", topic=BALANCES)
        assert sorted([*one.of, *other.of]) == sorted(accounts)
        assert one.of
        assert other.of


async def test_an_account_that_was_closed_is_gone_after_a_compaction(broker: AsyncBroker) -> None:
    await book(broker, "anna", 1)
    await book(broker, "bert", 2)
    await book(broker, "anna", None)
    await broker.compact(BALANCES)
    left = {record.key: record.value for record in await broker.records(BALANCES)}
    assert left == {b"anna": None, b"bert": b"2"}
    async with Balances(broker.client_kwargs()) as balances:
        await broker.wait_for_lag("balances")
        assert balances.of == {"bert": 2}


async def test_a_leader_that_moves_is_followed(broker: AsyncBroker) -> None:
    async with Balances(broker.client_kwargs()) as balances:
        async with broker.fault(api=["Fetch", "Produce"], error="NOT_LEADER_OR_FOLLOWER", times=4) as fault:
            await book(broker, "anna", 1)
            await broker.wait_for_lag("balances")
        assert fault.fired > 0
        assert balances.of == {"anna": 1}
