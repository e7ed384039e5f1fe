"""Long decisions: a thread makes them, and other decisions wait until they are made."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from broker.metadata.deciding import MAX_ENTRIES_ON_LOOP, LongDecisions, is_long
from coordinator.cluster.configs.rules import ConfigRules
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.broker.inprocess import LONG_S, InProcess, decode_response, request_frame

MANY = MAX_ENTRIES_ON_LOOP + 1
TOPIC = 2


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
        await decisions.make(lambda: {}["absent"])
    assert not decisions.is_busy
    decisions.stop()


async def test_a_stopped_controller_begins_no_long_decision() -> None:
    decisions = LongDecisions()
    decisions.stop()
    with pytest.raises(KafkaError) as refused:
        await decisions.make(lambda: None)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER
    assert not decisions.is_busy


async def test_a_stop_lets_the_decision_that_is_being_made_end() -> None:
    decisions, go_on = LongDecisions(), threading.Event()
    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as group:
        long = group.create_task(decisions.make(lambda: go_on.wait(LONG_S)))
        await asyncio.sleep(0)
        decisions.stop()
        go_on.set()
    assert long.result()


async def test_requests_are_answered_while_the_controller_decides_on_a_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    check = ConfigRules.check
    monkeypatch.setattr(ConfigRules, "check", lambda *arguments: (go_on.wait(LONG_S), check(*arguments))[1])
    config = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resources = [
        AlterConfigsResource(resource_type=TOPIC, resource_name=f"absent-{number}", configs=[config])
        for number in range(MANY)
    ]
    async with InProcess(tmp_path) as served:
        client, other = served.client(), served.client()
        client.send(request_frame(IncrementalAlterConfigsRequest(resources=resources, validate_only=False), 1))
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
