"""Tests how ISR changes reach the controller, and the effect of failures."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

from broker.clock import SystemClock
from broker.replica.alter_partition import AlterPartitionManager
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from coordinator.replication.isr import Isr
from coordinator.replication.roles import Leading
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.types import TopicPartition
from tests.broker.inprocess import LONG_S
from tests.coordinator.replication.test_isr_changes import BROKER_EPOCH, COMMITTED, EXPANSION, LEADER, T, answer, role


async def test_a_fault_of_ours_keeps_no_change_from_the_controller() -> None:
    name, tried, is_done = TopicPartition("t", 0), [], asyncio.Event()

    def become(after: Leading, now_ms: int) -> None:
        partition.role = after
        if after.isr.is_settled:
            is_done.set()

    async def alter(request: AlterPartitionRequest) -> AlterPartitionResponse:
        tried.append(request)
        if len(tried) == 1:
            raise ZeroDivisionError
        return answer((T, 0, ErrorCode.NONE))

    partition = SimpleNamespace(
        name=name, topic_id=T, role=role(Isr(COMMITTED)), high_watermark=0, log_end_offset=0, become=become
    )
    replicas = SimpleNamespace(topic=lambda _: {0: partition})
    manager = AlterPartitionManager(
        cast(Replicas, replicas), LEADER, lambda: BROKER_EPOCH, alter, SystemClock(), lambda: 0.0
    )
    manager.propose(cast(Partition, partition), EXPANSION)
    async with asyncio.timeout(LONG_S):
        await is_done.wait()
    assert [request.topics[0].topic_id for request in tried] == [T, T]
    await manager.stop()
