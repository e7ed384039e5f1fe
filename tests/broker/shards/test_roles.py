"""Tests that a shard is only on the broker that leads its partition, in the leader epoch in which it was loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.replica.partition import Partition
from broker.shards.groups import GroupCoordinator
from broker.shards.storage import PartitionStorage
from coordinator.engine.result import Result, Ticket, answered
from coordinator.group.records import AnyRecord
from coordinator.group.serde import EncodedRecord
from coordinator.replication.roles import Following, Leading
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.types import Buffer
from tests.broker.following import led_alone
from tests.broker.inprocess import InProcess
from tests.broker.shards.pair import eventually
from tests.broker.transacting import GROUP, TOPIC, Transacting, broker_on
from tests.group_requests import offset_commit

OFFSETS = "__consumer_offsets"


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with broker_on(
        tmp_path, offsets_topic_num_partitions="1", group_coordinator_append_linger_ms="500"
    ) as broker:
        await Transacting(broker).start()
        yield broker


def groups_of(broker: InProcess) -> tuple[GroupCoordinator, Partition]:
    return broker.server.broker.groups, broker.server.broker.replicas.leader(OFFSETS, 0)


def answer_nothing(shard: object, ticket: Ticket[None], now_ms: int) -> Result[AnyRecord]:
    return answered(ticket, None)


def answer_later(shard: object, ticket: Ticket[None], now_ms: int) -> Result[AnyRecord]:
    return Result()


def follow(partition: Partition) -> None:
    partition.become(Following(2, partition.leader_epoch + 1, partition.role.partition_epoch + 1), 0)


def lead(partition: Partition) -> None:
    role = led_alone(1, partition.leader_epoch + 1, partition.log_end_offset)
    role.partition_epoch = partition.role.partition_epoch + 1
    partition.become(role, 0)


async def test_a_demoted_coordinator_answers_all_who_wait_and_decides_nothing_more(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    waiting = groups.submit_at(0, answer_later)
    follow(partition)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await waiting
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        groups.submit_at(0, answer_nothing)


async def test_an_elected_coordinator_loads_before_it_answers(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    follow(partition)
    lead(partition)
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        groups.submit_at(0, answer_nothing)
    await eventually(lambda: groups.is_active(0), True)


async def test_a_new_epoch_of_the_same_leader_loads_anew(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    shard = groups.shards[0]
    lead(partition)
    assert groups.shards[0] is not shard
    await eventually(lambda: groups.is_active(0), True)


async def test_a_change_of_in_sync_replicas_leaves_the_shard_as_it_is(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    shard, role = groups.shards[0], partition.role
    assert isinstance(role, Leading)
    partition.become(role.with_isr(role.isr, role.partition_epoch + 1), 0)
    assert groups.shards[0] is shard
    assert groups.is_active(0)


async def test_what_was_gathered_in_one_epoch_is_not_written_in_the_next(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    await eventually(lambda: groups.is_active(0), True)
    end = partition.log_end_offset
    committing = asyncio.ensure_future(commit(broker))
    await asyncio.sleep(0.01)
    assert (partition.log_end_offset, committing.done()) == (end, False), "the record is gathered"
    lead(partition)
    assert await committing is ErrorCode.NOT_COORDINATOR
    await eventually(lambda: groups.is_active(0), True)
    assert partition.log_end_offset == end


async def commit(broker: InProcess) -> ErrorCode:
    response = await broker.client().ask(offset_commit(GROUP, {TOPIC: {0: 7}}), 8, OffsetCommitResponse)
    return error_code(response.topics[0].partitions[0].error_code)


async def test_a_storage_writes_in_its_own_epoch_only(broker: InProcess) -> None:
    _, partition = groups_of(broker)
    clock = broker.server.broker.clock
    storage: PartitionStorage[EncodedRecord] = PartitionStorage(partition, lambda records: bytearray(), clock, None)
    lead(partition)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        storage.append([])


async def test_a_late_failure_to_load_an_older_epoch_leaves_the_newer_shard(
    broker: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, partition = groups_of(broker)
    gate, read = asyncio.Event(), PartitionStorage.read
    pieces: list[Buffer] = []

    async def cut(_: PartitionStorage[EncodedRecord]) -> AsyncIterator[Buffer]:
        await gate.wait()
        for piece in pieces:
            yield piece
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE)

    monkeypatch.setattr(PartitionStorage, "read", cut)
    lead(partition)
    await asyncio.sleep(0)
    monkeypatch.setattr(PartitionStorage, "read", read)
    lead(partition)
    await eventually(lambda: groups.is_active(0), True)
    gate.set()
    await asyncio.sleep(0.01)
    assert groups.is_active(0)
    groups.submit_at(0, answer_nothing)


async def test_a_partition_that_goes_takes_its_shard_with_it(broker: InProcess) -> None:
    groups, partition = groups_of(broker)
    broker.server.broker.replicas.remove(partition.name)
    assert not groups.shards
