"""Tests transactions on a whole broker: both versions of the protocol, and the error of each wrong step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.broker.transacting import GROUP, ID, NO_PRODUCER, TOPIC, Answer, Transacting, broker_on, values_of

NONE = ErrorCode.NONE


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Transacting]:
    async with broker_on(tmp_path) as broker:
        client = Transacting(broker)
        await client.start()
        yield client


# Transactions v2: nothing is added by hand, each end gives a new epoch


async def test_v2_a_commit_makes_records_visible_and_an_abort_hides_them(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.write(producer, "a", "b") is NONE
    assert await client.read() == []
    assert await client.read(committed=False) == ["a", "b"]
    producer = await client.ended(producer)
    assert await client.read() == ["a", "b"]
    assert await client.write(producer, "c") is NONE
    await client.ended(producer, committed=False)
    assert await client.read() == ["a", "b"]
    assert await client.read(committed=False) == ["a", "b", "c"]


@pytest.mark.parametrize(("max_bytes", "expected"), [(1, None), (1 << 20, [0])])
async def test_a_batch_that_does_not_fit_is_left_out_with_its_aborted_transactions(
    client: Transacting, max_bytes: int, expected: list[int] | None
) -> None:
    for partition in (0, 1):
        producer = await client.producer()
        await client.write(producer, "a", partition=partition)
        await client.ended(producer, committed=False)
    partitions = [
        FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20),
        FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes),
    ]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, isolation_level=1, session_id=0, session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
    )  # fmt: skip
    answer = (await client.client.ask(request, 12, FetchResponse)).responses[0].partitions
    (last,) = (one for one in answer if one.partition_index == 0)
    aborted = last.aborted_transactions
    assert (aborted if aborted is None else [one.first_offset for one in aborted]) == expected


async def test_v2_each_end_bumps_the_epoch_and_sequences_begin_again(client: Transacting) -> None:
    first = await client.producer()
    await client.write(first, "a")
    await client.write(first, "b", sequence=1)
    second = await client.ended(first)
    assert second == Producer(first.producer_id, first.epoch + 1)
    assert await client.write(second, "c") is NONE
    assert await client.write(first, "late", sequence=2) is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_v2_the_next_transaction_may_begin_before_the_markers_are_written(client: Transacting) -> None:
    producer = await client.producer()
    await client.write(producer, "a")
    code, producer = await client.end(producer)
    assert code is NONE
    assert await client.write(producer, "b") is NONE
    await client.ended(producer)
    assert await client.read() == ["a", "b"]


async def test_v2_an_end_can_be_repeated(client: Transacting) -> None:
    producer = await client.producer()
    await client.write(producer, "a")
    bumped = await client.ended(producer)
    assert await client.end(producer) == (NONE, bumped)
    assert await client.end(producer, committed=False) == Answer(ErrorCode.INVALID_TXN_STATE)
    assert await client.end(bumped) == Answer(ErrorCode.INVALID_TXN_STATE)
    assert (await client.end(bumped, committed=False)).code is NONE


async def test_v2_offsets_are_committed_with_the_transaction(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.commit_offset(producer, 7) is NONE
    assert await client.committed_offset() == -1
    assert await client.committed_offset(stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer = await client.ended(producer)
    assert await client.committed_offset(stable=True) == 7
    assert await client.commit_offset(producer, 9) is NONE
    await client.ended(producer, committed=False)
    assert await client.committed_offset(stable=True) == 7


async def test_a_fetch_that_waits_for_committed_records_is_answered_at_the_commit(client: Transacting) -> None:
    reader = Transacting(client.broker)
    producer = await client.producer()
    waiting = asyncio.ensure_future(reader.fetch(max_wait_ms=5_000))
    await asyncio.sleep(0.01)
    await client.write(producer, "a")
    await client.write(producer, "b", sequence=1)
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await client.end(producer)
    assert values_of(await waiting) == ["a", "b"]


# Transactions v1: partitions are added, and verified


async def test_v1_a_transaction_with_all_its_requests(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.add(producer, 0, 1) == [NONE, NONE]
    assert await client.write(producer, "a", version=11) is NONE
    assert await client.write(producer, "b", partition=1, version=11) is NONE
    assert await client.add_offsets(producer) is NONE
    assert await client.commit_offset(producer, 3, version=4) is NONE
    assert await client.end(producer, version=4) == Answer(NONE)
    assert await client.settled() == "CompleteCommit"
    assert [await client.read(0), await client.read(1), await client.committed_offset()] == [["a"], ["b"], 3]


async def test_v1_the_epoch_and_the_sequence_go_on(client: Transacting) -> None:
    producer = await client.producer()
    for number in range(3):
        await client.add(producer, 0)
        assert await client.write(producer, str(number), sequence=number, version=11) is NONE
        await client.ended(producer, version=4)
    assert await client.read() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("version", "code"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
async def test_v1_records_for_a_partition_that_was_not_added_are_refused(
    client: Transacting, version: int, code: ErrorCode
) -> None:
    producer = await client.producer()
    await client.add(producer, 1)
    assert await client.write(producer, "a", version=version) is code


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)])
async def test_v1_offsets_of_a_group_that_was_not_added_are_refused(
    client: Transacting, version: int, code: ErrorCode
) -> None:
    producer = await client.producer()
    await client.add(producer, 1)
    assert await client.commit_offset(producer, 1, version=version) is code


async def test_v1_a_late_write_does_not_begin_a_transaction_that_hangs(client: Transacting) -> None:
    producer = await client.producer()
    await client.add(producer, 0)
    await client.ended(producer, committed=False, version=4)
    assert await client.write(producer, "late", version=11) is ErrorCode.TRANSACTION_ABORTABLE
    data = await client.fetch()
    assert data.last_stable_offset == data.high_watermark


async def test_v1_without_verification_it_would(tmp_path: Path) -> None:
    async with broker_on(tmp_path, transaction_partition_verification_enable="false") as broker:
        client = Transacting(broker)
        await client.start()
        producer = await client.producer()
        assert await client.write(producer, "hanging", version=11) is NONE
        assert (await client.describe()).transaction_state == "Empty"
        assert await client.mark(producer) is NONE
        data = await client.fetch()
        assert (data.last_stable_offset, data.high_watermark) == (2, 2)


# Missteps


@pytest.mark.parametrize(
    ("expected", "name", "code"),
    [
        (Producer(5, -1), ID, ErrorCode.INVALID_REQUEST),
        (Producer(-1, 0), None, ErrorCode.INVALID_REQUEST),
        (NO_PRODUCER, "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_an_init_that_makes_no_sense(
    client: Transacting, expected: Producer, name: str | None, code: ErrorCode
) -> None:
    assert await client.init(expected, name=name) == Answer(code)


async def test_an_idempotent_producer_gets_an_id_that_nobody_had(client: Transacting) -> None:
    first, second = await client.init(name=None), await client.init(name=None)
    assert (first.producer.epoch, second.producer.epoch) == (0, 0)
    assert first.producer.producer_id != second.producer.producer_id


@pytest.mark.parametrize(("version", "code"), [(3, "INVALID_PRODUCER_EPOCH"), (5, "PRODUCER_FENCED")])
async def test_a_fenced_producer_is_told_in_words_that_its_version_knows(
    client: Transacting, version: int, code: str
) -> None:
    old = await client.producer()
    await client.producer()
    assert (await client.init(old, version=version)).code.name == code


async def test_a_fenced_producer_can_do_nothing(client: Transacting) -> None:
    old = await client.producer()
    await client.write(old, "a")
    new = await client.producer()
    fenced, stale = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
    assert await client.add(old, 0) == [fenced]
    assert await client.add(old, 0, version=1) == [stale]
    assert await client.add_offsets(old) is fenced
    assert await client.add_offsets(old, version=1) is stale
    assert await client.commit_offset(old, 1) is stale
    assert await client.write(old, "b", sequence=1) is stale
    assert await client.write(old, "b", partition=1) is stale
    assert (await client.end(old, version=4)).code is fenced
    assert (await client.end(old, version=1)).code is stale
    assert await client.write(new, "c") is NONE
    await client.ended(new)
    assert await client.read() == ["c"]


async def test_an_unknown_producer_id(client: Transacting) -> None:
    await client.producer()
    unknown, mapping = Producer(999, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await client.add(unknown, 0) == [mapping]
    assert await client.add_offsets(unknown) is mapping
    assert await client.write(unknown, "a") is mapping
    assert await client.write(unknown, "a", version=11) is mapping
    assert await client.commit_offset(unknown, 1) is mapping
    assert (await client.end(unknown)).code is mapping


async def test_the_transaction_is_looked_at_before_the_acks(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.write(Producer(999, 0), "a", acks=2) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await client.write(producer, "a", acks=2) is ErrorCode.INVALID_REQUIRED_ACKS
    assert await client.write(producer, "b") is NONE
    await client.ended(producer)
    assert await client.read() == ["b"]


async def test_an_unknown_transactional_id(client: Transacting) -> None:
    producer, mapping = await client.producer(), ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await client.add(producer, 0, name="nobody") == [mapping]
    assert await client.write(producer, "a", name="nobody") is mapping
    assert (await client.end(producer, name="nobody")).code is mapping
    assert (await client.describe("nobody")).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert (await client.describe("")).error_code == ErrorCode.INVALID_REQUEST


async def test_partitions_that_do_not_exist_keep_the_others_out(client: Transacting) -> None:
    producer = await client.producer()
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert await client.add(producer, 0, 7) == [not_tried, unknown]
    assert await client.add(producer, 0, topic="nowhere") == [unknown]
    assert await client.write(producer, "a", partition=7) is unknown
    assert (await client.describe()).transaction_state == "Empty"


async def test_brokers_add_and_verify_in_batches(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.add_batched(producer, 0, verify=True) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert await client.add_batched(producer, 0, verify=False) == [NONE]
    assert await client.add_batched(producer, 0, 1, verify=True) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]


async def test_a_new_producer_has_an_open_transaction_aborted(client: Transacting) -> None:
    old = await client.producer()
    await client.write(old, "a")
    assert await client.init() == Answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert await client.settled() == "CompleteAbort"
    new = await client.producer()
    assert new == Producer(old.producer_id, old.epoch + 2)
    assert await client.read() == []


async def test_transactional_records_need_a_transactional_id(client: Transacting) -> None:
    producer = await client.producer()
    assert await client.write(producer, "a", name=None) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_transactional_records_of_no_producer_are_no_part_of_a_transaction(client: Transacting) -> None:
    await client.producer()
    nobody = Producer(-1, -1)
    assert await client.write(nobody, "a", name=None) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await client.write(nobody, "a") is ErrorCode.NONE
    assert await client.read() == ["a"]


async def test_an_end_without_a_transaction(client: Transacting) -> None:
    producer = await client.producer()
    assert (await client.end(producer)).code is ErrorCode.INVALID_TXN_STATE
    assert (await client.end(producer, version=4)).code is ErrorCode.INVALID_TXN_STATE
    assert (await client.end(producer, committed=False, version=4)).code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("timeout_ms", [0, -5, 900_001])
async def test_a_timeout_that_is_not_allowed(client: Transacting, timeout_ms: int) -> None:
    assert await client.init(timeout_ms=timeout_ms) == Answer(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


async def test_a_commit_after_the_timeout(tmp_path: Path) -> None:
    interval = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "1"}
    async with broker_on(tmp_path, **interval) as broker:
        client = Transacting(broker)
        await client.start()
        v2 = (await client.init(timeout_ms=1)).producer
        await client.write(v2, "a")
        await client.until("CompleteAbort")
        assert (await client.end(v2)).code is ErrorCode.INVALID_TXN_STATE
        assert (await client.end(v2, version=4)).code is ErrorCode.PRODUCER_FENCED
        assert (await client.end(v2, committed=False)).producer == Producer(v2.producer_id, v2.epoch + 1)
        assert await client.read() == []


# Markers from elsewhere


async def test_a_marker_of_an_old_epoch_or_coordinator_is_refused(client: Transacting) -> None:
    producer = await client.producer()
    await client.write(producer, "a")
    producer = await client.ended(producer)
    old = Producer(producer.producer_id, producer.epoch - 1)
    assert await client.mark(old) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await client.mark(producer, coordinator_epoch=-1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await client.mark(producer, partition=9) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await client.write(producer, "b")
    assert await client.mark(producer, transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_marker_on_the_offsets_topic_drops_pending_offsets(client: Transacting) -> None:
    producer = await client.producer()
    await client.commit_offset(producer, 5)
    index = client.broker.server.broker.groups.partition_of(GROUP)
    old = Producer(producer.producer_id, -1)
    assert await client.mark(old, topic="__consumer_offsets", partition=index) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await client.committed_offset(stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await client.mark(producer, topic="__consumer_offsets", partition=index) is NONE
    assert await client.committed_offset(stable=True) == -1


# The coordinators' own topics

INTERNAL = ("__transaction_state", "__consumer_offsets", "__share_group_state")


@pytest.mark.parametrize("version", range(4))
async def test_no_client_adds_a_coordinators_own_topic(client: Transacting, version: int) -> None:
    producer = await client.producer()
    for topic in INTERNAL:
        codes = await client.add(producer, 0, 1, 99, topic=topic, version=version)
        assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 3
    assert (await client.describe()).transaction_state == "Empty"
    await client.add_offsets(producer)
    assert (await client.describe()).transaction_state == "Ongoing"


async def test_an_internal_topic_keeps_the_other_partitions_out(client: Transacting) -> None:
    producer = await client.producer()
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TOPIC, INTERNAL[0], "absent")
        ],
    )
    answer = await client.client.ask(request, 3, AddPartitionsToTxnResponse)
    codes = {
        topic.name: [partition.partition_error_code for partition in topic.results_by_partition]
        for topic in answer.results_by_topic_v3_and_below
    }
    assert codes == {TOPIC: [55], INTERNAL[0]: [29], "absent": [3]}


@pytest.mark.parametrize("version", range(4))
async def test_partitions_that_are_named_twice_are_answered_as_they_are_named(
    client: Transacting, version: int
) -> None:
    producer = await client.producer()
    assert await client.add(producer, 0, 0, 1, 0, version=version) == [NONE] * 4
    assert await client.add(producer, version=version) == []
