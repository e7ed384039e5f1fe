"""Tests a replica that is reassigned to another broker: it is no longer served, and its log is deleted (KAFKA-13198,
KAFKA-13837)."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from broker.metadata.local_controller import LocalController
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.topics import PartitionChangeRecord
from protocol.types import NO_UUID
from tests.broker.asking import batch, fetch, produce
from tests.broker.inprocess import Client, InProcess

HERE, ELSEWHERE = 1, 2


async def reassign(broker: InProcess, to: int, topic_id: bytes) -> None:
    """Reassigns the partition's only replica, the leader, to another broker."""
    controller = cast(LocalController, broker.server.broker.controller)
    change = PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, replicas=[to], isr=[to], leader=to, directories=[NO_UUID]
    )
    await controller.write([change])


async def test_a_replica_that_is_reassigned_away_is_gone(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("orders", partitions=1)
        client = Client(broker.server)
        assert not (await produce(client, "orders", batch(b"first"))).error_code
        partition = broker.server.broker.replicas.leader("orders", 0)
        outcomes: list[KafkaError | None] = []
        partition.when_committed(2, outcomes.append)

        await reassign(broker, ELSEWHERE, topic_id)

        assert [error and error.code for error in outcomes] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert (await fetch(client, "orders")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(KafkaError) as caught:
            broker.server.broker.replicas.partition("orders", 0)
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not (tmp_path / "orders-0").exists()


async def test_a_replica_that_comes_back_begins_empty(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("orders", partitions=1)
        client = Client(broker.server)
        assert not (await produce(client, "orders", batch(b"first"))).error_code
        await reassign(broker, ELSEWHERE, topic_id)
        await reassign(broker, HERE, topic_id)
        assert broker.server.broker.replicas.leader("orders", 0).log_end_offset == 0
        assert (await produce(client, "orders", batch(b"second"))).base_offset == 0
