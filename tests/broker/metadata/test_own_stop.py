"""Tests the stop of a node that is broker and controller: before it ends, the other brokers have read the new
leaders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.metadata.local_controller import OWN_STOP_MS
from broker.metadata.node import NodeState
from broker.metadata.opening import Metadata
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationResponse
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.types import TopicPartition
from tests.broker.metadata.harness import MetadataHarness
from tests.coordinator.cluster import given

OTHER = 2
TURNS = 20
"""Number of turns of the event loop in which all work is done that doesn't wait for a timer."""


class StoppingNode:
    """A node that leads a partition with another replica on another broker."""

    def __init__(self, folder: Path) -> None:
        self.harness = MetadataHarness(folder)
        self.metadata: Metadata = self.harness.open()
        self.controller = self.metadata.controller

    async def heartbeat(self) -> None:
        """Sends a heartbeat of the other broker, which has read all metadata."""
        await self.controller.submit(given.heartbeat(self.metadata.image, OTHER), BrokerHeartbeatResponse)

    async def begin(self) -> None:
        cluster_id = self.metadata.image.cluster_id
        registration = given.registration(OTHER, cluster_id=cluster_id, log_dirs=[b"directory-two---"])
        await self.controller.submit(registration, BrokerRegistrationResponse)
        await self.heartbeat()
        topic = given.creatable("orders", assignments={0: [1, OTHER]})
        await self.controller.submit(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
        await self.heartbeat()
        self.stop = asyncio.ensure_future(self.metadata.node.leave())
        await turns()

    @property
    def leader(self) -> int:
        partition = self.metadata.image.partition(TopicPartition("orders", 0))
        assert partition is not None
        return partition.leader


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


@pytest.fixture
async def stopping(tmp_path: Path) -> StoppingNode:
    node = StoppingNode(tmp_path)
    await node.begin()
    assert node.leader == OTHER
    assert not node.stop.done()
    return node


async def test_the_heartbeat_that_it_waits_for_ends_the_wait_at_once(stopping: StoppingNode) -> None:
    await stopping.heartbeat()
    await turns()
    assert stopping.stop.done()
    assert stopping.metadata.node.state is NodeState.SHUTTING_DOWN


async def test_it_waits_for_one_deadline_and_not_in_between(stopping: StoppingNode) -> None:
    clock = stopping.harness.clock
    assert clock.time_ms + OWN_STOP_MS in {timer.when_ms for timer in clock.timers}
    clock.time_ms += OWN_STOP_MS - 1
    clock.ring()
    await turns()
    assert not stopping.stop.done()
    clock.time_ms += 1
    clock.ring()
    await turns()
    assert stopping.stop.done()
