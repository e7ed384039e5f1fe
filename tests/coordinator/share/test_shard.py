"""Tests the share coordinator's shard: exact records, fencing, snapshots, and pruning."""

from __future__ import annotations

import pytest

from coordinator.cluster.topics.topic import Topic
from coordinator.engine.result import Ticket
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareRecord, ShareResult, ShareSerde, ShareState, Update
from coordinator.share.settings import ShareSettings
from coordinator.share.shard import ShareShard, StateWrite, Summary
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Compression
from protocol.types import Uuid
from tests.coordinator.driver import carry_out

TOPIC_ID = b"0123456789abcdef"
KEY = ShareKey("group", TOPIC_ID, 0)
OTHER = ShareKey("group", TOPIC_ID, 1)
NOW_MS = 1_000


class Topics:
    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        topic = Topic("topic", topic_id)
        topic.partitions.update({0: None, 1: None})  # type: ignore[dict-item]
        return topic if topic_id == TOPIC_ID else None


def shard(updates: int = 500) -> ShareShard:
    return ShareShard(lambda: ShareSettings(updates, 60_000), Topics())


def applied(shard: ShareShard, result: ShareResult) -> list[ShareRecord]:
    carry_out(shard, result)
    return result.records


def initialize(shard: ShareShard, key: ShareKey = KEY, epoch: int = 1, start: int = -1) -> list[ShareRecord]:
    return applied(shard, shard.initialize(key, epoch, start, Ticket(), NOW_MS))


def written(
    *batches: StateBatch, start: int = 0, state_epoch: int = 1, leader_epoch: int = 0, done: int = 0
) -> StateWrite:
    return StateWrite(state_epoch, leader_epoch, start, done, batches)


def write(shard: ShareShard, what: StateWrite, now_ms: int = NOW_MS, key: ShareKey = KEY) -> list[ShareRecord]:
    return applied(shard, shard.write(key, what, Ticket(), now_ms))


def refusal(shard: ShareShard, what: StateWrite, key: ShareKey = KEY) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        shard.write(key, what, Ticket(), NOW_MS)
    return refused.value.code


def test_a_state_begins_with_a_snapshot() -> None:
    assert initialize(shard()) == [ShareRecord(KEY, ShareState(0, 1, 0, -1, -1, NOW_MS, NOW_MS))]


def test_a_state_with_a_start_offset_has_nothing_done_from_there_on() -> None:
    assert initialize(shard(), start=7) == [ShareRecord(KEY, ShareState(0, 1, 0, 7, 0, NOW_MS, NOW_MS))]


def test_a_write_is_an_update_of_what_was_written() -> None:
    coordinator = shard()
    initialize(coordinator)
    batches = [StateBatch(0, 4, 2, 1), StateBatch(5, 9, 2, 1)]
    assert write(coordinator, written(*batches, done=10)) == [
        ShareRecord(KEY, Update(0, 0, 0, 10, [StateBatch(0, 9, 2, 1)]))
    ]
    assert coordinator.states[KEY].batches == [StateBatch(0, 9, 2, 1)]


def test_after_so_many_updates_there_is_a_snapshot() -> None:
    coordinator = shard(updates=2)
    initialize(coordinator)
    write(coordinator, written(StateBatch(0, 4, 2, 1)))
    write(coordinator, written(StateBatch(5, 9, 0, 1)))
    assert write(coordinator, written(StateBatch(10, 14, 2, 1), start=5, done=5), NOW_MS + 5) == [
        ShareRecord(
            KEY,
            ShareState(1, 1, 0, 5, 5, NOW_MS + 5, NOW_MS + 5, [StateBatch(5, 9, 0, 1), StateBatch(10, 14, 2, 1)]),
        )
    ]
    assert isinstance(write(coordinator, written())[0].value, Update)


def test_a_start_offset_that_is_left_out_stays() -> None:
    coordinator = shard()
    initialize(coordinator, start=7)
    write(coordinator, written(StateBatch(7, 9, 2, 1), start=-1))
    assert coordinator.states[KEY].start_offset == 7


def test_who_was_never_initialized_cannot_be_written_or_read() -> None:
    coordinator = shard()
    assert refusal(coordinator, written()) is ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError) as refused:
        coordinator.read(KEY, 0, Ticket(), NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert coordinator.summary(KEY, Ticket(), NOW_MS).replies[0].answer == Summary()


def test_an_older_leader_is_fenced() -> None:
    coordinator = shard()
    initialize(coordinator)
    first = applied(coordinator, coordinator.read(KEY, 5, Ticket(), NOW_MS))
    assert first == [ShareRecord(KEY, Update(0, 5, -1, -1, []))]
    assert applied(coordinator, coordinator.read(KEY, 5, Ticket(), NOW_MS)) == []
    assert refusal(coordinator, written(leader_epoch=4)) is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError):
        coordinator.read(KEY, 4, Ticket(), NOW_MS)
    write(coordinator, written(leader_epoch=5))


def test_a_writer_of_an_older_state_is_fenced() -> None:
    coordinator = shard()
    initialize(coordinator, epoch=3)
    assert refusal(coordinator, written(state_epoch=2)) is ErrorCode.FENCED_STATE_EPOCH
    with pytest.raises(KafkaError) as refused:
        coordinator.initialize(KEY, 2, 0, Ticket(), NOW_MS)
    assert refused.value.code is ErrorCode.FENCED_STATE_EPOCH


def test_an_old_epoch_comes_before_a_batch_that_ends_before_it_begins() -> None:
    coordinator = shard()
    initialize(coordinator, epoch=3)
    backwards = StateBatch(5, 4, 0, 1)
    assert refusal(coordinator, written(backwards, state_epoch=3)) is ErrorCode.INVALID_REQUEST
    assert refusal(coordinator, written(backwards, state_epoch=2)) is ErrorCode.FENCED_STATE_EPOCH


def test_a_topic_that_is_not_there_has_no_state() -> None:
    with pytest.raises(KafkaError) as refused:
        shard().initialize(ShareKey("group", b"?" * 16, 0), 1, 0, Ticket(), NOW_MS)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_state_is_forgotten() -> None:
    coordinator = shard()
    initialize(coordinator)
    assert applied(coordinator, coordinator.delete(KEY, Ticket(), NOW_MS)) == [ShareRecord(KEY, None)]
    assert applied(coordinator, coordinator.delete(KEY, Ticket(), NOW_MS)) == []
    for table in (coordinator.states, coordinator.leader_epochs, coordinator.state_epochs):
        assert not table


def test_the_states_of_a_deleted_topic_are_forgotten() -> None:
    coordinator = shard()
    initialize(coordinator)
    initialize(coordinator, OTHER)
    assert applied(coordinator, coordinator.topics_deleted([TOPIC_ID], Ticket(), NOW_MS)) == [
        ShareRecord(KEY, None),
        ShareRecord(OTHER, None),
    ]


def test_share_partitions_that_nobody_writes_to_get_one_snapshot() -> None:
    coordinator = shard()
    coordinator.activate(NOW_MS, 0)
    initialize(coordinator)
    assert coordinator.next_deadline_ms() == NOW_MS + 60_000
    cold = applied(coordinator, coordinator.expire(NOW_MS + 60_000))
    assert cold == [ShareRecord(KEY, ShareState(1, 1, 0, -1, -1, NOW_MS, NOW_MS + 60_000))]
    assert coordinator.next_deadline_ms() == NOW_MS + 120_000
    assert applied(coordinator, coordinator.expire(NOW_MS + 120_000)) == []


def test_what_lies_before_all_newest_snapshots_may_go() -> None:
    coordinator = shard(updates=0)
    initialize(coordinator)
    initialize(coordinator, OTHER)
    befores = [coordinator.redundant.before]
    for key in (KEY, OTHER):
        write(coordinator, written(), key=key)
        befores.append(coordinator.redundant.before)
    assert befores == [None, 1, 2]


def test_records_come_back_from_the_log_as_they_were() -> None:
    serde = ShareSerde(Compression.NONE)
    batches = [StateBatch(0, 9, 2, 1), StateBatch(10, 10, 4, 5)]
    records = [
        ShareRecord(KEY, ShareState(3, 1, 2, 7, 5, 10, 20, batches)),
        ShareRecord(KEY, Update(3, 2, -1, 6, batches)),
        ShareRecord(KEY, None),
    ]
    encoded = serde.batches(serde.encode(records, NOW_MS))
    assert [record._replace(offset=-1) for record in serde.decode(memoryview(encoded))] == records


def test_a_batch_that_ends_before_it_begins_is_refused() -> None:
    state = shard()
    initialize(state)
    assert refusal(state, written(StateBatch(9, 8, 2, 1))) is ErrorCode.INVALID_REQUEST
