"""Tests transactions on a whole broker: what administrators see, and what remains after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.broker.asking import batch, produce_request
from tests.broker.following import acknowledge, follow, led
from tests.broker.inprocess import request_frame
from tests.broker.transacting import ID, Transacting, broker_on

NONE = ErrorCode.NONE


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Transacting]:
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        yield client


# Administration


async def ask_list(client: Transacting, **filters: object) -> tuple[int, list[str], list[str]]:
    request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})  # type: ignore[arg-type]
    response = await client.client.ask(request, 2, ListTransactionsResponse)
    names = [listed.transactional_id for listed in response.transaction_states]
    return response.error_code, names, response.unknown_state_filters


async def test_transactions_are_listed_by_what_is_asked(client: Transacting) -> None:
    open_one = await client.producer()
    await client.write(open_one, "a")
    await client.find("idle", 1)
    idle = await client.producer("idle")
    assert sorted((await ask_list(client))[1]) == ["idle", ID]
    assert await ask_list(client, state_filters=["Ongoing"]) == (0, [ID], [])
    assert await ask_list(client, state_filters=["Empty", "Sleeping"]) == (0, ["idle"], ["Sleeping"])
    assert await ask_list(client, producer_id_filters=[idle.producer_id, 12345]) == (0, ["idle"], [])
    assert await ask_list(client, state_filters=["Ongoing"], duration_filter=3_600_000) == (0, [], [])
    assert await ask_list(client, state_filters=["Ongoing"], duration_filter=-1) == (0, [ID], [])
    assert await ask_list(client, transactional_id_pattern="i.*") == (0, ["idle"], [])
    assert await ask_list(client, transactional_id_pattern="dl") == (0, [], [])
    assert (await ask_list(client, transactional_id_pattern="("))[0] == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_a_transaction_is_described(client: Transacting) -> None:
    producer = await client.producer()
    await client.add(producer, 1, 0)
    description = await client.describe()
    assert (description.transaction_state, description.producer_id, description.producer_epoch) == (
        "Ongoing",
        *producer,
    )
    assert [(topic.topic, topic.partitions) for topic in description.topics] == [("t", [0, 1])]


# Restarts


async def test_a_transaction_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        producer = await client.producer()
        await client.write(producer, "a")
        await client.commit_offset(producer, 4)
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        assert await client.read() == []
        assert await client.write(producer, "b", sequence=1) is NONE
        await client.ended(producer)
        assert await client.read() == ["a", "b"]
        assert await client.committed_offset(stable=True) == 4


async def test_markers_of_a_decided_transaction_are_written_after_a_restart(tmp_path: Path) -> None:
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        producer = await client.producer()
        await client.write(producer, "a")
        partition = broker.server.broker.replicas.partition("t", 0)
        broker.server.broker.replicas.remove(partition.name)  # its log is out of reach
        code, bumped = await client.end(producer)
        assert code is NONE
        assert (await client.describe()).transaction_state == "PrepareCommit"
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        assert await client.settled() == "CompleteCommit"
        assert await client.read() == ["a"]
        assert await client.end(producer) == (NONE, bumped)


async def test_a_marker_is_tried_again_until_the_log_is_back(client: Transacting) -> None:
    producer = await client.producer()
    await client.write(producer, "a")
    replicas = client.broker.server.broker.replicas
    partition = replicas.partition("t", 0)
    replicas.remove(partition.name)
    await client.end(producer)
    replicas.add(led(partition.name, partition.log))
    assert await client.settled() == "CompleteCommit"
    assert await client.read() == ["a"]


async def test_a_deleted_topic_holds_no_transaction_up(client: Transacting) -> None:
    producer = await client.producer()
    await client.add(producer, 0, 1)
    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    await client.broker.server.broker.controller.submit(request, DeleteTopicsResponse)
    assert (await client.end(producer)).code is NONE
    assert await client.settled() == "CompleteCommit"


async def test_records_that_wait_for_their_coordinator_are_not_overwritten_by_the_next_request(
    client: Transacting,
) -> None:
    producer = await client.producer()
    replicas = client.broker.server.broker.replicas
    for partition in replicas.topic("__transaction_state").values():
        follow(partition)
    writing = asyncio.ensure_future(client.write(producer, "a", version=12))
    await asyncio.sleep(0)
    other = client.broker.client()
    other.send(request_frame(produce_request("t", (1, batch(b"other" * 100))), 12))
    await other.frames(1)
    assert not writing.done()
    for partition in replicas.topic("__transaction_state").values():
        acknowledge(partition, partition.log_end_offset)
    assert await writing is ErrorCode.NONE
