"""Tests the state of share partitions whose coordinators are on two brokers, as the persister of one broker sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.share import persister as rules
from broker.share.persister import Persister
from broker.share.state_operations import DeleteState, InitializeState, ReadState, ReadSummary, WriteState
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite, Summary
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from protocol.metadata_records.topics import RemoveTopicRecord
from protocol.types import TopicPartition
from tests.broker.shards.pair import SHARE_STATE, Pair, eventually, pair_on

GROUP, TOPIC = "group", "topic"
WRITE, READ = "WriteShareGroupStateRequest", "ReadShareGroupStateRequest"
STATE_EPOCH, LEADER_EPOCH = 1, 5
BATCH = StateBatch(3, 7, 2, 1)


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Yields the pair: broker 2 coordinates all share partitions."""
    async with pair_on(tmp_path, monkeypatch) as pair:
        pair.make(TOPIC, 1, 1, 1, 1)
        pair.make(SHARE_STATE, 2, 2)
        await loaded(pair, 2)
        yield pair


async def loaded(pair: Pair, broker_id: int, *indexes: int) -> None:
    shares = pair.brokers[broker_id].server.broker.shares
    await eventually(lambda: all(map(shares.is_active, indexes or (0, 1))), True)


def persister(pair: Pair) -> Persister:
    return pair.brokers[1].server.broker.share_groups.persister


def key_of(pair: Pair, index: int = 0, group: str = GROUP) -> ShareKey:
    topic = pair.brokers[1].server.broker.image.topic(TOPIC)
    assert topic is not None
    return ShareKey(group, topic.topic_id, index)


def written(start_offset: int, *batches: StateBatch, leader_epoch: int = LEADER_EPOCH) -> StateWrite:
    return StateWrite(STATE_EPOCH, leader_epoch, start_offset, 4, batches)


async def begun(pair: Pair, index: int = 0) -> ShareKey:
    key = key_of(pair, index)
    await persister(pair).submit(InitializeState(key, STATE_EPOCH, 3))
    await persister(pair).submit(ReadState(key, LEADER_EPOCH))
    return key


async def test_a_state_lives_elsewhere(pair: Pair) -> None:
    key, states = await begun(pair), persister(pair)
    await states.submit(WriteState(key, written(3, BATCH)))
    state = await states.submit(ReadState(key, LEADER_EPOCH))
    assert (state.state_epoch, state.start_offset, list(state.batches)) == (STATE_EPOCH, 3, [BATCH])
    assert await states.submit(ReadSummary(key)) == Summary(STATE_EPOCH, LEADER_EPOCH, 3, 4)
    await states.submit(DeleteState(key))
    assert await states.submit(ReadSummary(key)) == Summary(0, 0, -1, -1)


async def test_a_leader_of_the_past_is_fenced_elsewhere_at_once(pair: Pair) -> None:
    key, states = await begun(pair), persister(pair)
    sent = pair.sent[WRITE, 2]
    with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
        await states.submit(WriteState(key, written(3, leader_epoch=LEADER_EPOCH - 1)))
    assert pair.sent[WRITE, 2] == sent + 1


async def test_many_share_partitions_of_a_group_go_in_one_request(pair: Pair) -> None:
    keys = [await begun(pair, index) for index in range(4)]
    sizes: list[int] = []

    async def count(request: object) -> None:
        if isinstance(request, WriteShareGroupStateRequest):
            sizes.append(sum(len(topic.partitions) for topic in request.topics))

    pair.before = count
    await asyncio.gather(*(persister(pair).submit(WriteState(key, written(3, BATCH))) for key in keys))
    assert sizes == [4]


async def test_what_cannot_be_written_now_is_written_later_and_in_order(pair: Pair) -> None:
    key, states = await begun(pair), persister(pair)
    pair.cut.add(2)
    first, second = (
        states.submit(WriteState(key, written(4))),
        states.submit(WriteState(key, written(6, BATCH._replace(first_offset=6)))),
    )
    await eventually(lambda: pair.sent[WRITE, 2] > 1, True)
    assert (first.done(), second.done()) == (False, False)
    pair.cut.clear()
    await asyncio.gather(first, second)
    assert (await states.submit(ReadState(key, LEADER_EPOCH))).start_offset == 6


async def test_a_write_follows_its_coordinator(pair: Pair) -> None:
    """The coordinator moves from there to here. A write that arrives before the state is loaded is retried."""
    key, states = await begun(pair), persister(pair)
    pair.cut.add(2)
    writing = states.submit(WriteState(key, written(4)))
    await eventually(lambda: pair.sent[WRITE, 2] > 0, True)
    index = pair.brokers[1].server.broker.shares.index_of(key)
    pair.lead(TopicPartition(SHARE_STATE, index), 1)
    with pytest.raises(KafkaError, match="uninitialized"):  # the log is another one
        await writing
    await loaded(pair, 1, index)
    await states.submit(InitializeState(key, STATE_EPOCH, 3))
    reads = pair.sent[READ, 2]
    assert (await states.submit(ReadState(key, LEADER_EPOCH))).start_offset == 3
    future = states.submit(WriteState(key, written(4)))
    assert future.done(), "what is here needs no wait"
    assert pair.sent[READ, 2] == reads


async def test_a_write_that_waits_here_goes_on_elsewhere_when_the_coordinator_moves(pair: Pair) -> None:
    key, states = await begun(pair), persister(pair)
    index = pair.brokers[1].server.broker.shares.index_of(key)
    name = TopicPartition(SHARE_STATE, index)
    pair.lead(name, 1)
    await loaded(pair, 1, index)
    pair.lead(name, 2)
    await states.submit(WriteState(key, written(4)))
    assert pair.sent[WRITE, 2] >= 1


async def test_it_is_tried_for_so_long_and_no_longer(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    key = await begun(pair)
    monkeypatch.setattr(rules, "GIVE_UP_MS", 50)
    pair.cut.add(2)
    with pytest.raises(KafkaError) as failure:
        await persister(pair).submit(WriteState(key, written(4)))
    assert failure.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_topic_that_is_deleted_is_asked_for_no_more(pair: Pair) -> None:
    key = await begun(pair)
    pair.commit(RemoveTopicRecord(topic_id=key.topic_id))
    with pytest.raises(KafkaError) as failure:
        await persister(pair).submit(ReadSummary(key))
    assert failure.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_one_partition_waits_for_no_other(pair: Pair) -> None:
    held, other = await begun(pair, 0), await begun(pair, 1)
    gate = asyncio.Event()

    async def hold(request: object) -> None:
        if isinstance(request, ReadShareGroupStateRequest):
            await gate.wait()

    pair.before = hold
    reading = asyncio.ensure_future(persister(pair).submit(ReadState(held, LEADER_EPOCH)))
    await persister(pair).submit(WriteState(other, written(4)))
    assert not reading.done()
    gate.set()
    await reading


async def test_a_state_topic_that_is_made_anew_may_have_another_number_of_partitions(pair: Pair) -> None:
    keys = [key_of(pair, group=f"group-{number}") for number in range(20)]
    shares = pair.brokers[1].server.broker.shares
    before = [shares.index_of(key) for key in keys]
    topic = shares.environment.image.topic(SHARE_STATE)
    assert topic is not None
    pair.commit(RemoveTopicRecord(topic_id=topic.topic_id))
    pair.make(SHARE_STATE, *[2] * 5)
    after = [shares.index_of(key) for key in keys]
    assert after == [shares.partition_of(key.coordinator_key) for key in keys]
    assert after != before
