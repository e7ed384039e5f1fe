"""Tests a broker's life with remote controllers that reject requests, don't answer, or answer late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from broker.metadata.node import Incarnation, NodeState
from broker.metadata.remote_node import LifecycleTimes, RemoteNode
from coordinator.cluster.brokers.info import BrokerRegistration, Endpoint
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.formatting import Identity
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from protocol.types import TopicPartition
from tests.client.scripted import PATIENCE_S
from tests.clock import ManualClock
from tests.coordinator.cluster import given

R = TypeVar("R")

ENDPOINTS = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
EPOCH = 17
TURNS = 20
"""Number of turns of the event loop in which all work is done that doesn't wait for a timer."""

ONE, TWO = b"directory-one---", b"directory-two---"


class FakeController:
    """A controller that answers registrations and heartbeats as a test sets, rejections first."""

    active = None
    has_renounced = False

    def __init__(self) -> None:
        self.refusals: list[ErrorCode] = []
        self.registered: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.assigned: list[AssignReplicasToDirsRequest] = []
        self.is_caught_up = self.should_shut_down = False
        self.epoch = EPOCH
        self.is_fenced = True

    def _refuse(self) -> None:
        if self.refusals:
            raise KafkaError(self.refusals.pop(0))

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        answer = ANSWERS[type(request)](self, request)
        assert isinstance(answer, response)
        return answer

    def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        self.registered.append(request)
        self._refuse()
        return BrokerRegistrationResponse(error_code=0, broker_epoch=self.epoch)

    def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        self.heartbeats.append(request)
        self._refuse()
        if request.broker_epoch != self.epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        return BrokerHeartbeatResponse(
            error_code=0,
            is_caught_up=self.is_caught_up,
            is_fenced=self.is_fenced,
            should_shut_down=self.should_shut_down,
        )

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        self._refuse()
        self.assigned.append(request)
        return AssignReplicasToDirsResponse(error_code=0, directories=[])


ANSWERS: dict[type, Callable[[FakeController, Any], object]] = {
    BrokerRegistrationRequest: FakeController.register_broker,
    BrokerHeartbeatRequest: FakeController.broker_heartbeat,
    AssignReplicasToDirsRequest: FakeController.assign_replicas_to_dirs,
}


INCARNATION = Incarnation(
    node_id=7,
    identity=Identity("the-cluster", {"/b": TWO, "/a": ONE}),
    log_dirs=("/b", "/a"),
    metadata_dir="/a",
    incarnation_id=b"incarnation-----",
    previous_broker_epoch=5,
)


class RemoteNodeHarness:
    def __init__(self, incarnation: Incarnation = INCARNATION) -> None:
        self.clock = ManualClock(ahead_ms=5_000_000)
        self.controller = FakeController()
        self.image = Image("the-cluster")
        self.failures: list[KafkaError] = []
        self.node = RemoteNode(
            incarnation,
            self.controller,
            self.image,
            clock=self.clock,
            draw=lambda: 0.5,
            times=LifecycleTimes(heartbeat_ms=2_000, session_ms=9_000, registration_ms=60_000),
            on_failure=self.failures.append,
        )

    async def until(self, come: Callable[[], bool]) -> int:
        """Moves the clock from timer to timer until a condition holds; returns the elapsed milliseconds."""
        await asyncio.sleep(0)
        begun_ms = self.clock.monotonic_ms()
        async with asyncio.timeout(PATIENCE_S):
            while not come():
                self.clock.advance(max(await self.clock.next_timer(), 0))
                for _ in range(TURNS):
                    await asyncio.sleep(0)
        return self.clock.monotonic_ms() - begun_ms

    async def running(self) -> None:
        self.controller.is_caught_up, self.controller.is_fenced = True, False
        await self.node.register(ENDPOINTS)
        unfencing = asyncio.ensure_future(self.node.unfence())
        await self.until(unfencing.done)

    async def end(self) -> None:
        self.node.state = NodeState.STARTING  # which needs no controller to leave
        await self.node.leave()


async def test_a_registration_says_who_this_is_and_how_it_was_stopped() -> None:
    harness = RemoteNodeHarness()
    await harness.node.register(ENDPOINTS, failed={"/b"})
    (request,) = harness.controller.registered
    assert (request.broker_id, request.cluster_id, request.incarnation_id) == (7, "the-cluster", b"incarnation-----")
    assert (request.log_dirs, request.previous_broker_epoch) == ([ONE], 5)
    assert harness.node.broker_epoch == EPOCH
    await harness.end()


async def test_log_directories_are_told_in_the_order_of_their_ids() -> None:
    harness = RemoteNodeHarness()
    await harness.node.register(ENDPOINTS)
    assert harness.controller.registered[0].log_dirs == [ONE, TWO]
    await harness.end()


async def test_a_refused_registration_is_tried_again_as_the_same_incarnation() -> None:
    harness = RemoteNodeHarness()
    harness.controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 3
    registering = asyncio.ensure_future(harness.node.register(ENDPOINTS))
    assert await harness.until(registering.done) == 100 + 200 + 400
    assert len({request.incarnation_id for request in harness.controller.registered}) == 1
    await harness.end()


async def test_a_broker_that_is_refused_for_too_long_gives_up_with_the_reason() -> None:
    harness = RemoteNodeHarness()
    harness.controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 100
    registering = asyncio.ensure_future(harness.node.register(ENDPOINTS))
    took_ms = await harness.until(registering.done)
    assert 40_000 < took_ms < 60_000
    with pytest.raises(KafkaError, match=r"node.id 7 of cluster the-cluster could not register .*DUPLICATE_BROKER"):
        await registering


async def test_a_broker_of_another_cluster_gives_up_at_once() -> None:
    harness = RemoteNodeHarness()
    harness.controller.refusals = [ErrorCode.INCONSISTENT_CLUSTER_ID]
    with pytest.raises(KafkaError, match="INCONSISTENT_CLUSTER_ID"):
        await harness.node.register(ENDPOINTS)
    assert len(harness.controller.registered) == 1


async def test_it_stays_fenced_until_it_has_caught_up_and_its_logs_are_there() -> None:
    harness = RemoteNodeHarness()
    await harness.node.register(ENDPOINTS)
    catching_up = asyncio.ensure_future(harness.node.caught_up())
    await harness.until(lambda: len(harness.controller.heartbeats) == 3)
    assert not catching_up.done()
    harness.image.offset, harness.controller.is_caught_up = 20, True
    await harness.until(catching_up.done)
    assert harness.node.state is NodeState.RECOVERY
    assert all(request.want_fence for request in harness.controller.heartbeats)
    assert harness.controller.heartbeats[-1].current_metadata_offset == 20
    unfencing = asyncio.ensure_future(harness.node.unfence())
    harness.controller.is_fenced = False
    await harness.until(unfencing.done)
    assert not harness.controller.heartbeats[-1].want_fence
    assert harness.node.state is NodeState.RUNNING
    await harness.end()


async def test_heartbeats_go_on_at_their_interval() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    before = len(harness.controller.heartbeats)
    assert await harness.until(lambda: len(harness.controller.heartbeats) == before + 3) == 3 * 2_000
    await harness.end()


async def test_a_lost_heartbeat_is_followed_sooner_and_ever_less_often() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    before = len(harness.controller.heartbeats)
    harness.controller.refusals = [ErrorCode.REQUEST_TIMED_OUT] * 3
    assert await harness.until(lambda: len(harness.controller.heartbeats) == before + 4) == 2_000 + 100 + 200 + 400
    await harness.end()


async def test_a_fault_of_ours_ends_the_broker_instead_of_its_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError("planted")

    harness = RemoteNodeHarness()
    await harness.running()
    monkeypatch.setattr(harness.controller, "submit", fail)
    await harness.until(lambda: bool(harness.failures))
    assert [error.message for error in harness.failures] == ["ZeroDivisionError: planted"]
    async with asyncio.timeout(PATIENCE_S):
        await harness.node.leave()  # at once: no heartbeat will bring the answer that it may shut down


async def test_a_failed_directory_is_told_at_once_and_from_then_on() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    await harness.node.directory_failed("/b")
    assert harness.controller.heartbeats[-1].offline_log_dirs == [TWO]
    before = len(harness.controller.heartbeats)
    await harness.until(lambda: len(harness.controller.heartbeats) > before)
    assert harness.controller.heartbeats[-1].offline_log_dirs == [TWO]
    await harness.end()


async def test_a_failed_directory_that_nobody_can_be_told_of_ends_the_broker() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    harness.controller.refusals = [ErrorCode.REQUEST_TIMED_OUT] * 1_000
    telling = asyncio.ensure_future(harness.node.directory_failed("/b"))
    assert await harness.until(telling.done) == 30_000
    assert [error.code for error in harness.failures] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert "/b has failed, and no controller accepted the report" in harness.failures[0].message
    await harness.end()


async def test_a_broker_without_directories_registers_anew_once_the_metadata_can_have_them() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    epoch = harness.node.broker_epoch
    without = BrokerRegistration(7, epoch, INCARNATION.incarnation_id, (), {})
    harness.image.brokers[7] = without
    harness.image.features["metadata.version"] = 16
    before = len(harness.controller.heartbeats)
    await harness.until(lambda: len(harness.controller.heartbeats) > before)
    assert len(harness.controller.registered) == 1
    harness.image.features["metadata.version"] = 17
    await harness.until(lambda: len(harness.controller.registered) == 2)
    first, second = harness.controller.registered
    assert (second.incarnation_id, second.log_dirs) == (first.incarnation_id, [ONE, TWO])
    harness.image.brokers[7] = without._replace(log_dirs=(ONE, TWO))
    before = len(harness.controller.heartbeats)
    await harness.until(lambda: len(harness.controller.heartbeats) > before)
    assert len(harness.controller.registered) == 2
    await harness.end()


async def test_a_broker_that_stops_waits_until_it_is_let_go() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    leaving = asyncio.ensure_future(harness.node.leave())
    await harness.until(lambda: sum(request.want_shut_down for request in harness.controller.heartbeats) >= 3)
    assert not leaving.done()
    harness.controller.should_shut_down = True
    await harness.until(leaving.done)
    assert harness.node.state is NodeState.SHUTTING_DOWN


async def test_a_broker_that_nobody_lets_go_stops_when_its_session_has_ended() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    harness.controller.refusals = [ErrorCode.REQUEST_TIMED_OUT] * 1_000
    leaving = asyncio.ensure_future(harness.node.leave())
    assert await harness.until(leaving.done) == 9_000


async def test_a_broker_without_controlled_shutdown_stops_at_once_and_tells_no_controller() -> None:
    harness = RemoteNodeHarness(INCARNATION._replace(hands_over=False))
    await harness.running()
    await harness.node.leave()
    assert not any(request.want_shut_down for request in harness.controller.heartbeats)
    assert harness.node.state is NodeState.SHUTTING_DOWN


async def test_a_broker_that_was_never_registered_just_stops() -> None:
    harness = RemoteNodeHarness()
    await harness.node.leave()
    assert harness.controller.heartbeats == []


async def test_a_replica_that_was_moved_is_reported_until_a_controller_takes_it() -> None:
    harness = RemoteNodeHarness()
    given.apply(harness.image, given.topic("orders"))
    harness.controller.refusals = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STALE_BROKER_EPOCH]
    await harness.node.moved(TopicPartition("orders", 0), "/b")
    await harness.until(lambda: bool(harness.controller.assigned))
    (request,) = harness.controller.assigned
    assert [(one.id, [topic.topic_id for topic in one.topics]) for one in request.directories] == [
        (TWO, [given.TOPIC_ID])
    ]


def replace(harness: RemoteNodeHarness) -> None:
    """Registers another incarnation in place of the node, in the node's image."""
    harness.controller.epoch = EPOCH + 10
    harness.image.brokers[7] = BrokerRegistration(7, EPOCH + 5, b"former----------", (), {}, None, fenced=True)


async def test_a_broker_whose_registration_was_replaced_registers_anew() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    replace(harness)
    await harness.until(lambda: harness.controller.heartbeats[-1].broker_epoch == EPOCH + 10)
    assert [request.incarnation_id for request in harness.controller.registered] == [b"incarnation-----"] * 2
    assert harness.node.broker_epoch == EPOCH + 10
    registrations = len(harness.controller.registered)
    heartbeats = len(harness.controller.heartbeats)
    await harness.until(lambda: len(harness.controller.heartbeats) > heartbeats + 3)
    assert len(harness.controller.registered) == registrations
    await harness.end()


async def test_a_broker_gives_up_if_the_incarnation_in_its_place_is_alive() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    replace(harness)
    harness.controller.refusals = [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 100
    assert 60_000 <= await harness.until(lambda: bool(harness.failures)) <= 80_000
    (failure,) = harness.failures
    assert failure.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert "node.id 7 of cluster the-cluster could not register" in failure.message
    await harness.end()


async def test_a_broker_that_was_unregistered_stays_out() -> None:
    harness = RemoteNodeHarness()
    await harness.running()
    harness.image.offset = EPOCH + 5
    harness.controller.epoch = EPOCH + 10
    heartbeats = len(harness.controller.heartbeats)
    await harness.until(lambda: len(harness.controller.heartbeats) > heartbeats + 3)
    assert len(harness.controller.registered) == 1
    await harness.end()
