"""Tests that each fault affects requests only as described, is counted, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import FETCH_VERSION, PRODUCE_VERSION, batch, fetch_request, produce, produce_request
from tests.broker.inprocess import Client, request_frame
from tests.programs.control.controlled import Controlled
from tests.waiting import until

TOPIC = "orders"
ONE = batch(b"one")


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Controlled]:
    async with Controlled(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as controlled:
        await controlled.create_topic(TOPIC, partitions=3)
        yield controlled


@pytest.fixture
def client(broker: Controlled) -> Client:
    return broker.client()


def end_of(broker: Controlled, partition: int = 0) -> int:
    """Returns the number of records in a partition."""
    return broker.server.broker.replicas.topic(TOPIC)[partition].log_end_offset


async def produced(client: Client, *partitions: int, acks: int = -1) -> dict[int, int]:
    """Returns the errors of a Produce to these partitions, by partition number."""
    request = produce_request(TOPIC, *((index, ONE) for index in partitions), acks=acks)
    answer = await client.ask(request, PRODUCE_VERSION, ProduceResponse)
    return {part.index: part.error_code for topic in answer.responses for part in topic.partition_responses}


async def fetched(client: Client, *partitions: int, session: tuple[int, int] = (0, -1)) -> FetchResponse:
    request = fetch_request(TOPIC, partitions=partitions, session=session)
    return await client.ask(request, FETCH_VERSION, FetchResponse)


def errors_in(response: FetchResponse) -> dict[int, int]:
    return {part.partition_index: part.error_code for topic in response.responses for part in topic.partitions}


async def closed(client: Client) -> None:
    """Returns once the broker has closed the connection."""
    await until(lambda: client.wire.closing)


async def turns() -> None:
    """Runs some turns of the event loop, so that everything that is ready happens."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_an_error_refuses_as_often_as_it_is_to_and_nothing_is_carried_out(
    broker: Controlled, client: Client
) -> None:
    fault = await broker.fault(api="Produce", topic=TOPIC, error="NOT_ENOUGH_REPLICAS", times=2)
    for _ in range(2):
        assert await produced(client, 0) == {0: ErrorCode.NOT_ENOUGH_REPLICAS}
    assert end_of(broker) == 0
    assert await produced(client, 0) == {0: 0}
    shown = await broker.get(f"/v1/faults/{fault}")
    assert (shown["fired"], shown["left"]) == (2, 0)
    assert end_of(broker) == 1


@pytest.mark.parametrize("conditions", [{"topic": "other"}, {"client_id": "other"}, {"api": "Fetch"}, {"group": "g"}])
async def test_a_request_that_is_not_meant_is_answered_as_ever(
    broker: Controlled, client: Client, conditions: dict[str, str]
) -> None:
    fault = await broker.fault(error="UNKNOWN_SERVER_ERROR", **conditions)
    assert await produced(client, 0, 1) == {0: 0, 1: 0}
    assert await broker.fired(fault) == 0


async def test_a_partition_is_refused_and_the_others_are_written(broker: Controlled, client: Client) -> None:
    fault = await broker.fault(api="Produce", topic=TOPIC, partition=1, error="NOT_LEADER_OR_FOLLOWER")
    assert await produced(client, 0, 1, 2) == {0: 0, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER, 2: 0}
    assert [end_of(broker, index) for index in range(3)] == [1, 0, 1]
    assert await broker.fired(fault) == 1


async def test_an_error_after_tells_of_a_failure_and_the_records_are_there(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Produce", topic=TOPIC, error="REQUEST_TIMED_OUT", when="after", times=1)
    assert await produced(client, 0, 1) == {0: ErrorCode.REQUEST_TIMED_OUT, 1: ErrorCode.REQUEST_TIMED_OUT}
    assert (end_of(broker, 0), end_of(broker, 1)) == (1, 1)


async def test_requests_are_let_pass_first(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Produce", error="KAFKA_STORAGE_ERROR", skip=1, times=1)
    assert [await produced(client, 0) for _ in range(3)] == [{0: 0}, {0: ErrorCode.KAFKA_STORAGE_ERROR}, {0: 0}]


async def test_a_producer_that_wants_no_answer_is_told_by_the_end_of_its_connection(
    broker: Controlled, client: Client
) -> None:
    await broker.fault(api="Produce", error="NOT_ENOUGH_REPLICAS")
    client.send(request_frame(produce_request(TOPIC, (0, ONE), acks=0), PRODUCE_VERSION))
    await closed(client)
    assert end_of(broker) == 0


async def test_a_fetch_in_a_session_has_errors_for_what_the_session_knows(broker: Controlled, client: Client) -> None:
    opened = await fetched(client, 0, 1, session=(0, 0))
    fault = await broker.fault(api="Fetch", topic=TOPIC, partition=1, error="OFFSET_OUT_OF_RANGE", times=1)
    assert errors_in(await fetched(client, session=(opened.session_id, 1))) == {1: ErrorCode.OFFSET_OUT_OF_RANGE}
    assert errors_in(await fetched(client, session=(opened.session_id, 2))) == {}
    assert await broker.fired(fault) == 1


async def test_a_fetch_that_would_wait_for_records_has_its_error_at_once(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Fetch", error="NOT_LEADER_OR_FOLLOWER")
    request = fetch_request(TOPIC, partitions=(0, 1), max_wait_ms=60_000)
    answer = await client.ask(request, FETCH_VERSION, FetchResponse)
    assert errors_in(answer) == dict.fromkeys((0, 1), ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def test_metadata_tells_of_a_partition_without_leader(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Metadata", topic=TOPIC, partition=2, error="LEADER_NOT_AVAILABLE")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    (topic,) = (await client.ask(request, 12, MetadataResponse)).topics
    leaders = {part.partition_index: (part.error_code, part.leader_id) for part in topic.partitions}
    assert leaders == {0: (0, 1), 1: (0, 1), 2: (ErrorCode.LEADER_NOT_AVAILABLE, -1)}


async def test_errors_of_other_shapes(broker: Controlled, client: Client) -> None:
    """Some APIs have one error for the whole answer, others one for each entry of the request."""
    await broker.fault(api=["ListGroups", "CreateTopics", "FindCoordinator"], error="CLUSTER_AUTHORIZATION_FAILED")
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (await client.ask(ListGroupsRequest(), 4, ListGroupsResponse)).error_code == code
    new = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for name in "ab"
    ]
    made = await client.ask(CreateTopicsRequest(topics=new, timeout_ms=1000), 7, CreateTopicsResponse)
    assert [(topic.name, topic.error_code) for topic in made.topics] == [("a", code), ("b", code)]
    coordinators = await client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse)
    assert [(one.key, one.error_code) for one in coordinators.coordinators] == [("g", code)]
    assert broker.server.broker.image.topic("a") is None


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_answer_comes_later(broker: Controlled, client: Client, when: str) -> None:
    fault = await broker.fault(api="Produce", delay_ms=1_000, when=when)
    client.send(request_frame(produce_request(TOPIC, (0, ONE)), PRODUCE_VERSION))
    await turns()
    assert not client.wire.sent
    assert end_of(broker) == (1 if when == "after" else 0)
    await client.frames(1)
    assert (await broker.fired(fault), end_of(broker)) == (1, 1)


@pytest.mark.parametrize(("when", "records"), [("before", 0), ("after", 1)])
async def test_the_connection_is_closed_in_place_of_an_answer(
    broker: Controlled, client: Client, when: str, records: int
) -> None:
    await broker.fault(api="Produce", disconnect=True, when=when, times=1)
    client.send(request_frame(produce_request(TOPIC, (0, ONE)), PRODUCE_VERSION))
    await closed(client)
    assert (bytes(client.wire.sent), end_of(broker)) == (b"", records)


@pytest.mark.parametrize(("when", "records"), [("before", 0), ("after", 1)])
async def test_a_dropped_answer_never_comes_and_later_requests_wait_behind_it(
    broker: Controlled, client: Client, when: str, records: int
) -> None:
    fault = await broker.fault(api="Produce", drop=True, when=when, times=1)
    client.send(request_frame(produce_request(TOPIC, (0, ONE)), PRODUCE_VERSION))
    client.send(request_frame(ListGroupsRequest(), 4))
    await turns()
    assert (bytes(client.wire.sent), client.wire.closing, end_of(broker)) == (b"", False, records)
    await broker.end_fault(fault)
    await closed(client)
    assert not client.wire.sent


async def test_a_client_that_goes_away_from_a_dropped_answer_leaves_nothing_behind(
    broker: Controlled, client: Client
) -> None:
    await broker.fault(api="Fetch", drop=True, when="after")
    client.send(request_frame(fetch_request(TOPIC, max_wait_ms=60_000), FETCH_VERSION))
    await turns()
    client.connection.connection_lost(None)
    await turns()
    assert not any(partition.waiters for partition in broker.server.broker.replicas)


async def test_half_of_an_answer_is_sent(broker: Controlled, client: Client) -> None:
    await produced(client, 0)
    client.send(request_frame(fetch_request(TOPIC), FETCH_VERSION))
    (whole,) = await client.frames(1)
    await broker.fault(api="Fetch", half_answer=True)
    client.send(request_frame(fetch_request(TOPIC), FETCH_VERSION))
    await closed(client)
    assert len(client.wire.sent) == (4 + len(whole)) // 2
    assert end_of(broker) == 1


async def test_a_client_is_throttled(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Produce", throttle_ms=60_000)
    answer = await client.ask(produce_request(TOPIC, (0, ONE)), PRODUCE_VERSION, ProduceResponse)
    assert answer.throttle_time_ms == 60_000
    assert not client.wire.reading


async def test_partitions_come_in_another_order(broker: Controlled, client: Client) -> None:
    await produced(client, 0, 1, 2)

    async def order() -> list[int]:
        return list(errors_in(await fetched(client, 0, 1, 2)))

    orders = set()
    for seed in range(8):
        fault = await broker.fault(shuffle=seed)
        first = await order()
        assert (await order(), sorted(first)) == (first, [0, 1, 2])
        orders.add(tuple(first))
        await broker.end_fault(fault)
    assert len(orders) > 2


async def versions_of(client: Client, version: int = 3) -> dict[int, int]:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = await client.ask(request, version, ApiVersionsResponse)
    return {api.api_key: api.max_version for api in answer.api_keys}


async def test_an_api_is_as_old_as_it_is_to_be(broker: Controlled, client: Client) -> None:
    before = await versions_of(client)
    fault = await broker.fault(api="Fetch", max_version=11)
    assert await versions_of(client) == {**before, 1: 11}
    assert errors_in(await client.ask(fetch_request(TOPIC), 11, FetchResponse)) == {0: 0}
    assert await broker.fired(fault) == 1
    client.send(request_frame(fetch_request(TOPIC), FETCH_VERSION))
    await closed(client)
    assert await broker.fired(fault) == 2


async def test_an_api_is_hidden(broker: Controlled, client: Client) -> None:
    await broker.fault(api="ListGroups", max_version=-1)
    assert 16 not in await versions_of(client)
    client.send(request_frame(ListGroupsRequest(), 0))
    await closed(client)


async def test_the_whole_broker_is_an_older_release(broker: Controlled, client: Client) -> None:
    await broker.fault(release="2.1")
    client.send(request_frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3))
    (frame,) = await client.frames(1)
    assert int.from_bytes(frame[4:6]) == ErrorCode.UNSUPPORTED_VERSION
    versions = await versions_of(client, 2)
    assert (versions[0], versions[1], versions[18]) == (7, 10, 2)
    assert 68 not in versions


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("loading", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("moved", ErrorCode.NOT_COORDINATOR),
        ("unavailable", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
async def test_a_coordinator_is_not_there(broker: Controlled, client: Client, state: str, code: ErrorCode) -> None:
    await client.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4, FindCoordinatorResponse)
    await broker.fault(coordinator=state, group="g")
    answers = [
        await client.ask(HeartbeatRequest(group_id=group, generation_id=1, member_id="m"), 4, HeartbeatResponse)
        for group in ("g", "h")
    ]
    assert answers[0].error_code == code
    assert answers[1].error_code != code


async def test_there_is_no_room_for_records_until_the_fault_goes(broker: Controlled, client: Client) -> None:
    fault = await broker.fault(disk_full=True)
    assert await produced(client, 0) == {0: ErrorCode.KAFKA_STORAGE_ERROR}
    assert (await broker.end_fault(fault))["fired"] == 1
    assert await produced(client, 0) == {0: 0}
    assert end_of(broker) == 1


async def test_a_partition_has_no_leader_until_the_fault_goes(broker: Controlled, client: Client) -> None:
    before = (await broker.get("/v1/describe"))["topics"]
    fault = await broker.fault(topic=TOPIC, partition=1, no_leader=True)
    assert await produced(client, 0, 1) == {0: 0, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    (topic,) = [one for one in (await broker.get("/v1/describe"))["topics"] if one["topic"] == TOPIC]
    assert [one["leader"] for one in topic["partitions"]] == [1, -1, 1]
    await broker.end_fault(fault)
    assert await produced(client, 1) == {1: 0}
    (topic,) = [one for one in (await broker.get("/v1/describe"))["topics"] if one["topic"] == TOPIC]
    (was,) = [one for one in before if one["topic"] == TOPIC]
    assert topic["partitions"][1]["leader_epoch"] == was["partitions"][1]["leader_epoch"] + 2


async def test_a_leader_is_moved_within_its_isr_alone(broker: Controlled) -> None:
    content = {"topic": TOPIC, "partition": 0, "move_leader": 7}
    answer = await broker.control.ask("POST", "/v1/faults", content)
    assert (answer.status, "not in the ISR of orders-0, [1]" in answer.content["error"]) == (409, True)
    assert await broker.get("/v1/faults") == {"faults": []}


async def test_the_first_fault_acts_and_no_other(broker: Controlled, client: Client) -> None:
    faults = [await broker.fault(api="Produce", error=code, times=1) for code in (19, 20)]
    assert await produced(client, 0) == {0: 19}
    assert [await broker.fired(fault) for fault in faults] == [1, 0]
    assert await produced(client, 0) == {0: 20}


async def test_all_are_gone_when_all_are_taken_away(broker: Controlled, client: Client) -> None:
    for fields in ({"error": 19}, {"disk_full": True}, {"topic": TOPIC, "partition": 0, "no_leader": True}):
        await broker.fault(**fields)
    answer = await broker.control.ask("DELETE", "/v1/faults")
    assert [fault["id"] for fault in answer.content["faults"]] == ["1", "2", "3"]
    assert await produced(client, 0) == {0: 0}
    assert await broker.get("/v1/faults") == {"faults": []}


async def test_a_fault_goes_with_the_connection_that_it_was_set_on(broker: Controlled, client: Client) -> None:
    owner = broker.control_client()
    await owner.ask("POST", "/v1/faults", {"api": "Produce", "error": 19, "while_connected": True})
    await broker.fault(api="Produce", error=20)
    assert await produced(client, 0) == {0: 19}
    owner.close()
    async with asyncio.timeout(60):
        while len((await broker.get("/v1/faults"))["faults"]) > 1:
            pass
    assert await produced(client, 0) == {0: 20}


async def test_what_is_not_meant_still_takes_its_usual_way_beside_a_fault(broker: Controlled, client: Client) -> None:
    await broker.fault(api="Fetch", error=19)
    assert (await produce(client, TOPIC, ONE)).error_code == 0
