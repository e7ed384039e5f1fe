"""Tests the stop of a node that is broker and controller: before it ends, the other brokers have read the new
leaders."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import pytest

from broker.metadata.local_controller import OWN_STOP_MS
from broker.metadata.node import LEAVE_MS, LEAVING, Node, NodeState
from broker.metadata.opening import Metadata
from coordinator.cluster.controller import THIS_BROKER, Asker
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationResponse
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.types import TopicPartition
from tests.broker.inprocess import InProcess
from tests.broker.metadata.harness import MetadataHarness
from tests.coordinator.cluster import given

R = TypeVar("R")

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


class Obstinate:
    """A controller that never allows this broker to stop."""

    def __init__(self, metadata: Metadata) -> None:
        self.heartbeats = 0
        self.active = None
        self.has_renounced = False
        self._controller = metadata.controller

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        answer = await self._controller.submit(request, response, asker)
        if isinstance(answer, BrokerHeartbeatResponse):
            self.heartbeats += 1
            answer.should_shut_down = False
        return answer


async def test_a_broker_that_must_not_stop_asks_again_with_pauses_and_then_stops(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open()
    controller = Obstinate(metadata)
    node = Node(metadata.node.incarnation, controller, metadata.image, harness.clock)
    node.broker_epoch = metadata.node.broker_epoch
    stop = asyncio.ensure_future(node.leave())
    await turns()
    assert controller.heartbeats == 2  # the second at once: the first may have handed over the last leaders
    while not stop.done():
        await turns()
        harness.clock.advance(1_000)
    assert LEAVE_MS // LEAVING.max_ms < controller.heartbeats < LEAVE_MS // 1_000
    assert node.state is NodeState.SHUTTING_DOWN


async def test_without_controlled_shutdown_the_controller_is_not_told(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open()
    controller = Obstinate(metadata)
    incarnation = metadata.node.incarnation._replace(hands_over=False)
    node = Node(incarnation, controller, metadata.image, harness.clock)
    node.broker_epoch = metadata.node.broker_epoch
    await node.leave()
    assert controller.heartbeats == 0
    assert node.state is NodeState.SHUTTING_DOWN


@pytest.mark.parametrize(("option", "fenced"), [("true", True), ("false", False)])
async def test_a_stopped_broker_is_fenced_by_its_controlled_shutdown(tmp_path: Path, option: str, fenced: bool) -> None:
    async with InProcess(tmp_path, {"controlled.shutdown.enable": option}) as broker:
        image = broker.server.metadata.image
    assert [registration.fenced for registration in image.brokers.values()] == [fenced]
