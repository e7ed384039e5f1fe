"""Tests long decisions: a thread makes them, and other decisions wait until then."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from pathlib import Path

import pytest

from broker.metadata.deciding import MAX_ENTRIES_ON_LOOP, LongDecisions, is_long
from coordinator.cluster.changes import Change
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.controller import Controller
from coordinator.cluster.image import Image
from coordinator.cluster.machine import BUSY_WAIT_MS
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_acls import DeleteAclsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame
from tests.broker.metadata.harness import MetadataHarness
from tests.coordinator.cluster import given
from tests.waiting import until

MANY = MAX_ENTRIES_ON_LOOP + 1
TOPIC = 2
OTHER = 2
SESSION_MS = ClusterOptions().broker_session_timeout_ms


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Returns the event for which checks of configs wait in their threads."""
    go_on, check = threading.Event(), ConfigRules.check
    monkeypatch.setattr(ConfigRules, "check", lambda *arguments: (go_on.wait(LONG_S), check(*arguments))[1])
    return go_on


def absent_topics() -> IncrementalAlterConfigsRequest:
    """Returns a request that needs a long decision."""
    config = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resources = [
        AlterConfigsResource(resource_type=TOPIC, resource_name=f"absent-{number}", configs=[config])
        for number in range(MANY)
    ]
    return IncrementalAlterConfigsRequest(resources=resources, validate_only=False)


@pytest.mark.parametrize(
    ("request_of_many", "expected"),
    [
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[*range(MANY)])]), True),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[])] * MANY), True),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[1])] * (MANY // 2 - 1)), False),
        (ElectLeadersRequest(topic_partitions=None), False),
    ],
)
def test_a_request_is_long_by_its_entries_and_those_nested_in_them(request_of_many: object, expected: bool) -> None:
    assert is_long(request_of_many) is expected


async def test_others_wait_until_a_decision_is_made() -> None:
    decisions, go_on, order = LongDecisions(), threading.Event(), list[str]()

    def decide() -> str:
        go_on.wait(LONG_S)
        return "decided"

    async def long() -> None:
        order.append(await decisions.make(decide))

    async def other() -> None:
        await decisions.over()
        order.append("other")

    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        group.create_task(long())
        await asyncio.sleep(0)
        assert decisions.is_busy
        group.create_task(other())
        await asyncio.sleep(0)
        assert order == []
        go_on.set()
    assert order == ["decided", "other"]
    decisions.stop()


async def test_others_wait_for_a_decision_whose_client_is_gone() -> None:
    decisions, go_on = LongDecisions(), threading.Event()
    long = asyncio.ensure_future(decisions.make(lambda: go_on.wait(LONG_S)))
    await asyncio.sleep(0)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert decisions.is_busy
    go_on.set()
    async with asyncio.timeout(LONG_S):
        await decisions.over()
    assert not decisions.is_busy
    decisions.stop()


async def test_a_decision_that_fails_ends_the_wait_of_others() -> None:
    decisions = LongDecisions()
    with pytest.raises(KeyError):
        await decisions.make(lambda: dict[str, int]()["absent"])
    assert not decisions.is_busy
    decisions.stop()


async def test_a_stopped_controller_begins_no_long_decision() -> None:
    decisions = LongDecisions()
    decisions.stop()
    with pytest.raises(KafkaError) as refused:
        await decisions.make(lambda: None)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER
    assert not decisions.is_busy


async def test_requests_are_answered_while_the_controller_decides_on_a_long_one(
    tmp_path: Path, go_on: threading.Event
) -> None:
    async with InProcess(tmp_path) as served:
        client, other = served.client(), served.client()
        client.send(request_frame(absent_topics(), 1))
        answer = await other.ask(ListGroupsRequest(states_filter=[], types_filter=[]), 5, ListGroupsResponse)
        assert not answer.error_code
        assert not client.wire.sent
        creation = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        third = served.client()
        third.send(request_frame(CreateTopicsRequest(topics=[creation], timeout_ms=1000), 7))
        go_on.set()
        (frame,) = await client.frames(1)
        altered = decode_response(frame, 44, 1, IncrementalAlterConfigsResponse)
        codes = {response.error_code for response in altered.responses}
        assert (codes, len(altered.responses)) == ({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, MANY)
        (frame,) = await third.frames(1)
        assert decode_response(frame, 19, 7, CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE


async def test_an_error_of_a_decision_whose_client_is_gone_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # what earlier tests have left
    caplog.clear()
    decisions, go_on = LongDecisions(), threading.Event()

    def decide() -> None:
        go_on.wait(LONG_S)
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    long = asyncio.ensure_future(decisions.make(decide))
    await asyncio.sleep(0)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    go_on.set()
    async with asyncio.timeout(LONG_S):
        await decisions.over()
    del long
    gc.collect()
    assert caplog.messages == []
    decisions.stop()


async def test_a_decision_that_was_being_made_at_a_stop_is_not_carried_out() -> None:
    decisions, go_on = LongDecisions(), threading.Event()
    long = asyncio.ensure_future(decisions.make(lambda: go_on.wait(LONG_S)))
    await asyncio.sleep(0)
    decisions.stop()
    go_on.set()
    with pytest.raises(KafkaError, match="this controller has stopped"):
        await long


async def register_other(image: Image, controller: Controller) -> None:
    """Registers a second broker, and begins its session."""
    registration = given.registration(OTHER, cluster_id=image.cluster_id, log_dirs=[b"directory-two---"])
    await controller.submit(registration, BrokerRegistrationResponse)
    await controller.submit(given.heartbeat(image, OTHER), BrokerHeartbeatResponse)


async def test_a_heartbeat_counts_from_its_arrival_and_not_from_its_decision(
    tmp_path: Path, go_on: threading.Event
) -> None:
    harness = MetadataHarness(tmp_path)
    metadata, clock = harness.open(), harness.clock
    image, controller = metadata.image, metadata.controller
    await register_other(image, controller)
    assert not image.brokers[OTHER].fenced
    fenced: list[bool] = []
    metadata.cluster.loader.subscribe(lambda _: fenced.append(image.brokers[OTHER].fenced))
    long = asyncio.ensure_future(controller.submit(absent_topics(), IncrementalAlterConfigsResponse))
    await asyncio.sleep(0)
    heartbeat = given.heartbeat(image, OTHER)
    for _ in range(3):  # each within a session of the one before, and all of them wait
        clock.time_ms += SESSION_MS * 2 // 3
        waiting = asyncio.ensure_future(controller.submit(heartbeat, BrokerHeartbeatResponse))
        await asyncio.sleep(0)
        clock.ring()
    go_on.set()
    await until(lambda: not controller._long_decisions.is_busy)  # type: ignore[attr-defined]
    clock.time_ms += BUSY_WAIT_MS
    clock.ring()  # before those that waited have their turn
    await long
    assert not (await waiting).is_fenced
    assert not any(fenced)
    await metadata.cluster.stop()


async def test_a_thread_applies_the_records_of_a_long_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop applies them once, after the commit, to the image that all modules see."""
    applied, apply = Counter[bool](), Image.apply

    def counted(image: Image, record: MetadataRecord) -> Change | None:
        applied[threading.current_thread() is threading.main_thread()] += 1
        return apply(image, record)

    async with InProcess(tmp_path) as served:
        monkeypatch.setattr(Image, "apply", counted)
        topics = [
            CreatableTopic(name=f"t-{number}", num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for number in range(MANY)
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
        answer = await served.client().ask(request, 7, CreateTopicsResponse)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}
        records = 2 * MANY
        assert applied == {True: records, False: records}


async def test_other_requests_wait_for_one_long_decision_at_most(tmp_path: Path, go_on: threading.Event) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open()
    order = list[str]()

    async def ask(name: str, request: object, response: type[object]) -> None:
        await metadata.controller.submit(request, response)
        order.append(name)

    creation = CreateTopicsRequest(topics=[given.creatable("t", 1, 1)], timeout_ms=1000)
    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(ask(f"long {number}", absent_topics(), IncrementalAlterConfigsResponse))
        await asyncio.sleep(0)
        group.create_task(ask("other", creation, CreateTopicsResponse))
        await asyncio.sleep(0)
        assert order == []
        go_on.set()
    assert order == ["long 0", "other", "long 1", "long 2"]
    await metadata.cluster.stop()


async def test_a_broker_is_fenced_in_time_while_one_long_decision_follows_the_other(
    tmp_path: Path, go_on: threading.Event
) -> None:
    harness = MetadataHarness(tmp_path)
    metadata, clock = harness.open(), harness.clock
    image, controller = metadata.image, metadata.controller
    await register_other(image, controller)
    fenced: list[bool] = []

    async def ask() -> None:
        await controller.submit(absent_topics(), IncrementalAlterConfigsResponse)
        fenced.append(image.brokers[OTHER].fenced)

    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(ask())
        await asyncio.sleep(0)
        clock.time_ms += SESSION_MS + 1
        clock.ring()  # the controller is busy
        go_on.set()
    assert fenced == [False, True]
    await metadata.cluster.stop()


def test_a_filter_of_access_control_entries_is_long_because_it_may_be_compared_with_every_entry() -> None:
    entry_filter = given.every_acl()
    assert is_long(DeleteAclsRequest(filters=[entry_filter]))
