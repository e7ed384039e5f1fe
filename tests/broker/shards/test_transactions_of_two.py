"""Tests transactions over partitions that two brokers lead, with the coordinator on either of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from protocol.metadata_records.topics import RemoveTopicRecord
from protocol.types import TopicPartition
from tests.broker.shards.pair import OFFSETS, TRANSACTION_STATE, Pair, eventually, pair_on
from tests.broker.transacting import ID, TOPIC, TransactionalClient

NONE = ErrorCode.NONE
HERE, THERE = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
MARKERS, ADD = "WriteTxnMarkersRequest", "AddPartitionsToTxnRequest"


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Yields the pair: broker 1 coordinates all transactional ids and leads partition 0; broker 2 leads partition 1,
    and coordinates the group."""
    async with pair_on(tmp_path, monkeypatch) as pair:
        pair.make(TOPIC, 1, 2)
        pair.make(TRANSACTION_STATE, 1, 1)
        pair.make(OFFSETS, 2, 2)
        await loaded(pair, 1)
        await eventually(lambda: pair.brokers[2].server.broker.groups.is_active(0), True)
        await eventually(lambda: pair.brokers[2].server.broker.groups.is_active(1), True)
        yield pair


async def loaded(pair: Pair, broker_id: int) -> None:
    transactions = pair.brokers[broker_id].server.broker.transactions
    await eventually(lambda: all(map(transactions.is_active, (0, 1))), True)


def clients(pair: Pair) -> tuple[TransactionalClient, TransactionalClient]:
    return TransactionalClient(pair.client(1)), TransactionalClient(pair.client(2))


async def test_v2_a_commit_reaches_the_partitions_of_both(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    assert await one.write(producer, "a") is NONE
    assert await two.write(producer, "b", partition=1) is NONE
    assert pair.sent[ADD, 1] == 1, "the first write there asked the coordinator here"
    assert await two.write(producer, "c", partition=1, sequence=1) is NONE
    assert pair.sent[ADD, 1] == 1, "the second did not"
    assert await two.read(1) == []
    await one.ended(producer)
    assert pair.sent[MARKERS, 2] == 1
    assert (await one.read(0), await two.read(1)) == (["a"], ["b", "c"])


async def test_v1_an_abort_hides_the_records_of_both(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    assert await one.add(producer, 0, 1) == [NONE, NONE]
    assert await one.write(producer, "a", version=11) is NONE
    assert await two.write(producer, "b", partition=1, version=11) is NONE
    assert pair.sent[ADD, 1] == 1
    await one.ended(producer, committed=False, version=4)
    assert (await one.read(0), await two.read(1)) == ([], [])
    assert await two.read(1, committed=False) == ["b"]


@pytest.mark.parametrize(
    ("version", "code"), [(11, ErrorCode.TRANSACTION_ABORTABLE), (10, ErrorCode.INVALID_TXN_STATE)]
)
async def test_v1_a_partition_that_was_not_added_gets_no_records(pair: Pair, version: int, code: ErrorCode) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    assert await one.add(producer, 0) == [NONE]
    assert await two.write(producer, "b", partition=1, version=version) is code
    assert await two.read(1, committed=False) == []


async def test_a_producer_of_the_past_is_fenced_by_the_coordinator_elsewhere(pair: Pair) -> None:
    one, two = clients(pair)
    old = await one.producer()
    await one.producer()
    assert await two.write(old, "late", partition=1) is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_offsets_join_a_transaction_that_another_broker_coordinates(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    assert await two.commit_offset(producer, 7) is NONE
    assert await two.committed_offset(stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer = await one.ended(producer)
    assert await two.committed_offset() == 7
    assert await two.commit_offset(producer, 9) is NONE
    await one.ended(producer, committed=False)
    assert await two.committed_offset(stable=True) == 7


async def test_v1_offsets_are_verified_elsewhere(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    assert await two.commit_offset(producer, 7, version=4) is ErrorCode.TRANSACTION_ABORTABLE
    assert await one.add_offsets(producer) is NONE
    assert await two.commit_offset(producer, 7, version=4) is NONE


async def test_what_cannot_be_verified_now_is_written_later(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    pair.cut.add(1)
    assert await two.write(producer, "b", partition=1) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await two.commit_offset(producer, 7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    pair.cut.clear()
    assert await two.write(producer, "b", partition=1) is NONE


async def test_markers_wait_for_a_broker_that_is_cut_off(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    await one.write(producer, "a")
    await two.write(producer, "b", partition=1)
    pair.cut.add(2)
    assert (await one.end(producer)).code is NONE
    await eventually(lambda: pair.sent[MARKERS, 2] > 1, True)
    assert await one.read(0) == ["a"], "the partition here waits for nobody"
    assert (await one.describe()).transaction_state == "PrepareCommit"
    pair.cut.clear()
    await one.settled()
    assert await two.read(1) == ["b"]


async def ended_without_marker(pair: Pair) -> tuple[TransactionalClient, TransactionalClient]:
    """Ends a transaction whose marker does not reach broker 2, which is cut off."""
    one, two = clients(pair)
    producer = await one.producer()
    await two.write(producer, "b", partition=1)
    pair.cut.add(2)
    await one.end(producer)
    await eventually(lambda: pair.sent[MARKERS, 2] > 0, True)
    return one, two


async def test_markers_follow_the_leader(pair: Pair) -> None:
    one, _ = await ended_without_marker(pair)
    pair.lead(THERE, 1)
    assert await one.settled() == "CompleteCommit"


async def test_a_deleted_partition_needs_no_marker(pair: Pair) -> None:
    one, _ = await ended_without_marker(pair)
    topic = pair.brokers[1].server.broker.image.topic(TOPIC)
    assert topic is not None
    pair.commit(RemoveTopicRecord(topic_id=topic.topic_id))
    assert await one.settled() == "CompleteCommit"


async def test_markers_of_many_transactions_go_in_one_request_while_one_is_under_way(pair: Pair) -> None:
    one, two = clients(pair)
    names = [f"many-{number}" for number in range(20)]
    producers: dict[str, Producer] = {}
    for name in names:
        producers[name] = await one.producer(name)
        assert await two.write(producers[name], name, partition=1, name=name) is NONE
    gate, sizes = asyncio.Event(), []

    async def hold(request: object) -> None:
        if isinstance(request, WriteTxnMarkersRequest):
            sizes.append(len(request.markers))
            await gate.wait()

    pair.before = hold
    for name in names:
        assert (await one.end(producers[name], name=name)).code is NONE
        await eventually(lambda: len(sizes), 1)
    gate.set()
    for name in names:
        assert await one.settled(name) == "CompleteCommit"
    assert sizes == [1, 19]
    assert sorted(await two.read(1)) == sorted(names)


async def test_markers_of_a_coordinator_that_was_demoted_are_sent_no_more(pair: Pair) -> None:
    one, two = await ended_without_marker(pair)
    index = pair.brokers[1].server.broker.transactions.partition_of(ID)
    pair.lead(TopicPartition(TRANSACTION_STATE, index), 2)
    assert (await one.init()).code is ErrorCode.NOT_COORDINATOR
    sent = pair.sent[MARKERS, 2]
    pair.cut.clear()
    await asyncio.sleep(0.3)
    assert pair.sent[MARKERS, 2] == sent
    await loaded_at(pair, 2, index)
    assert (await two.init()).code is NONE


async def loaded_at(pair: Pair, broker_id: int, index: int) -> None:
    await eventually(lambda: pair.brokers[broker_id].server.broker.transactions.is_active(index), True)


async def test_a_coordinator_in_a_new_epoch_loads_what_was_decided_and_ends_it(pair: Pair) -> None:
    one, two = await ended_without_marker(pair)
    index = pair.brokers[1].server.broker.transactions.partition_of(ID)
    pair.lead(TopicPartition(TRANSACTION_STATE, index), 1)
    pair.cut.clear()
    await loaded_at(pair, 1, index)
    assert await one.settled() == "CompleteCommit"
    assert await two.read(1) == ["b"]


async def test_a_coordinator_of_the_past_ends_nothing_any_more(pair: Pair) -> None:
    one, two = clients(pair)
    producer = await one.producer()
    await one.write(producer, "a")
    await two.write(producer, "b", partition=1)
    assert await two.mark(producer, partition=1, coordinator_epoch=7) is NONE
    assert (await one.end(producer)).code is NONE
    await eventually(lambda: pair.sent[MARKERS, 2] > 0, True)
    await asyncio.sleep(0.3)
    assert pair.sent[MARKERS, 2] == 1, "it is not sent again"
    assert (await one.describe()).transaction_state == "PrepareCommit"


async def test_the_group_is_elsewhere(pair: Pair) -> None:
    one, _ = clients(pair)
    producer = await one.producer()
    assert await one.commit_offset(producer, 7) is ErrorCode.NOT_COORDINATOR
