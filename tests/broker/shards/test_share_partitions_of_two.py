"""Tests share groups with partitions that another broker leads: dead letters are sent there, and high watermarks come
from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.share import dead_letters as rules
from broker.share.administration import describe_offset
from broker.share.dead_letters import REJECTED, Letter
from broker.share.state_operations import InitializeState, WriteState
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.backoff import Backoff
from protocol.errors import ErrorCode
from protocol.metadata_records.settings import ConfigRecord, FeatureLevelRecord
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records
from tests.broker.shards.pair import SHARE_STATE, Pair, eventually, pair_on

GROUP, HERE, THERE, QUEUE = "group", "here", "there", "dlq.queue"
TOPIC_RESOURCE = 2
LETTER = Letter(0, 1, 1, REJECTED)


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Yields the pair: broker 1 has the group and its state; broker 2 leads a topic and the queue's second
    partition."""
    async with pair_on(tmp_path, monkeypatch) as pair:
        pair.make(HERE, 1, 1)
        pair.make(THERE, 2)
        pair.make(QUEUE, 1, 2)
        pair.make(SHARE_STATE, 1, 1)
        allowed = "errors.deadletterqueue.group.enable"
        pair.commit(
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=QUEUE, name=allowed, value="true"),
            FeatureLevelRecord(name="share.version", feature_level=2),
        )
        shares = pair.brokers[1].server.broker.shares
        await eventually(lambda: all(map(shares.is_active, (0, 1))), True)
        yield pair


def records_of(pair: Pair, broker_id: int, topic: str, index: int) -> list[Record]:
    partition = pair.brokers[broker_id].server.broker.replicas.leader(topic, index)
    (data,) = partition.read_all(0, 1 << 20).parts or (b"",)
    return [record for at, header in batch.iter_batches(data) for record in read_records(data, at, header)]


async def bury(pair: Pair, index: int) -> None:
    """Archives the first two records of a partition on this broker."""
    broker = pair.brokers[1].server.broker
    source = broker.replicas.leader(HERE, index)
    config = broker.config.group_config({"errors.deadletterqueue.topic.name": QUEUE})
    await broker.share_groups.dead_letters.write(ShareKey(GROUP, source.topic_id, index), source, [LETTER], config)


@pytest.mark.parametrize(("index", "leader"), [(0, 1), (1, 2)])
async def test_a_letter_is_in_the_queues_partition_of_the_same_number(pair: Pair, index: int, leader: int) -> None:
    await bury(pair, index)
    letters = records_of(pair, leader, QUEUE, index)
    assert [dict(letter.headers)["__dlq.errors.offset"] for letter in letters] == [b"0", b"1"]
    assert pair.sent["ProduceRequest", 2] == (1 if leader == 2 else 0)


async def test_a_letter_waits_for_a_leader_that_is_cut_off(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "BACKOFF", Backoff(initial_ms=10))

    async def mend(_: object) -> None:
        pair.cut.clear() if pair.sent["ProduceRequest", 2] > 1 else pair.cut.add(2)

    pair.before = mend
    await bury(pair, 1)
    assert pair.sent["ProduceRequest", 2] == 2
    assert len(records_of(pair, 2, QUEUE, 1)) == 2


async def described(pair: Pair) -> tuple[int, ErrorCode]:
    """Describes the lag of the share partition that broker 2 leads, which has seven records, three of them
    delivered."""
    broker = pair.brokers[1].server.broker
    partition = pair.brokers[2].server.broker.replicas.leader(THERE, 0)
    partition.append(memoryview(build([Record(0, 0, None, b"value")] * 7)), 0)
    key = ShareKey(GROUP, partition.topic_id, 0)
    await broker.share_groups.persister.submit(InitializeState(key, 1, 0))
    await broker.share_groups.persister.submit(WriteState(key, StateWrite(1, 0, 2, 1, ())))
    offset = await describe_offset(broker.share_groups, key)
    return offset.lag, ErrorCode.NONE if offset.error is None else offset.error.code


async def test_the_lag_is_counted_to_the_end_that_the_leader_tells(pair: Pair) -> None:
    assert await described(pair) == (7 - 2 - 1, ErrorCode.NONE)


async def test_a_leader_that_cannot_be_asked_is_an_error(pair: Pair) -> None:
    pair.cut.add(2)
    assert await described(pair) == (-1, ErrorCode.NETWORK_EXCEPTION)
