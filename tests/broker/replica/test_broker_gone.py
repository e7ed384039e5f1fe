"""Tests records that wait only for a replica that was about to join the ISR: they are committed when its broker
goes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from broker.metadata.local_controller import LocalController
from coordinator.replication.isr import NO_BROKER_EPOCH
from coordinator.replication.roles import FollowerFetch
from protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.records.building import build
from protocol.records.record import Record
from protocol.types import NO_UUID
from tests.broker.inprocess import InProcess

HERE, ELSEWHERE = 1, 2
EPOCH = 1_000
FENCED = 1


async def test_what_waits_for_a_broker_alone_is_committed_once_that_is_fenced(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("orders", partitions=1)
        controller = cast(LocalController, broker.server.broker.controller)
        follow = PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, replicas=[HERE, ELSEWHERE], isr=[HERE], directories=[NO_UUID, NO_UUID]
        )
        await controller.write(
            [
                RegisterBrokerRecord(
                    broker_id=ELSEWHERE,
                    broker_epoch=EPOCH,
                    fenced=False,
                    incarnation_id=bytes(16),
                    end_points=[],
                    features=[],
                    rack="",
                ),
                follow,
            ]
        )
        partition = broker.server.broker.replicas.leader("orders", 0)
        proposed: list[object] = []
        partition.propose = lambda *isr: proposed.append(isr)
        now_ms = broker.server.broker.clock.now_ms()
        partition.fetched(FollowerFetch(ELSEWHERE, NO_BROKER_EPOCH, 0, 0, now_ms))
        partition.append(memoryview(build([Record(timestamp=now_ms, value=b"v")])), now_ms)
        assert proposed
        assert (partition.high_watermark, partition.log_end_offset) == (0, 1)

        await controller.write([BrokerRegistrationChangeRecord(broker_id=ELSEWHERE, broker_epoch=EPOCH, fenced=FENCED)])

        assert partition.high_watermark == 1
