"""Tests quotas: a request beyond its quota is answered with a throttle time, and its connection is muted for that
time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.fetch import FetchResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, fetch_request, produce_request
from tests.broker.inprocess import Client, InProcess, request_frame

TOPIC = "orders"
LARGE = batch(b"x" * 10_000)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, {"quota.window.num": "2"}) as broker:
        await broker.create_topic(TOPIC)
        yield broker


async def limit(
    broker: InProcess,
    key: str,
    value: float | None,
    kind: str = "client-id",
    name: str = "test",
    client: Client | None = None,
) -> None:
    entity = [EntityData(entity_type=kind, entity_name=name)]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None)]
    client = broker.client() if client is None else client
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)], validate_only=False)
    answer = await client.ask(request, 1, AlterClientQuotasResponse)
    assert not answer.entries[0].error_code, answer


async def produced(client: Client, version: int) -> ProduceResponse:
    return await client.ask(produce_request(TOPIC, (0, LARGE)), version, ProduceResponse)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
async def test_who_produces_more_is_throttled_and_what_it_sent_is_there(broker: InProcess, version: int) -> None:
    await limit(broker, "producer_byte_rate", 1000)
    client = broker.client()
    answer = await produced(client, version)
    assert not answer.responses[0].partition_responses[0].error_code
    assert 8_000 < answer.throttle_time_ms < 12_000
    assert not client.connection.is_read_from
    client.send(request_frame(ListGroupsRequest(), 5))
    await broker.settled()
    assert client.wire.take() == []


async def test_a_throttled_connection_goes_on_in_its_time(broker: InProcess) -> None:
    await limit(broker, "producer_byte_rate", 9_500)
    client = broker.client()
    throttled_ms = (await produced(client, 12)).throttle_time_ms
    assert 0 < throttled_ms < 1_000
    answer = await client.ask(ListGroupsRequest(), 5, ListGroupsResponse)
    assert not answer.throttle_time_ms


@pytest.mark.parametrize("version", [3, 11, 12])
async def test_a_fetch_beyond_the_quota_gets_nothing_and_costs_nothing(broker: InProcess, version: int) -> None:
    await produced(broker.client(), 12)
    await produced(broker.client(), 12)
    await limit(broker, "consumer_byte_rate", 10_500)  # the second answer is refused for most of a second
    client = broker.client()
    first = await client.ask(fetch_request(TOPIC), version, FetchResponse)
    assert first.responses[0].partitions[0].records
    assert not first.throttle_time_ms
    second = await client.ask(fetch_request(TOPIC), version, FetchResponse)
    assert second.responses == []
    assert 0 < second.throttle_time_ms < 5_000


async def test_a_fetch_session_goes_on_after_an_answer_without_records(broker: InProcess) -> None:
    await produced(broker.client(), 12)
    client = broker.client()
    opened = await client.ask(fetch_request(TOPIC, offset=1, session=(0, 0)), 12, FetchResponse)
    await limit(broker, "consumer_byte_rate", 5_000)
    again = fetch_request(TOPIC, offset=0, session=(opened.session_id, 1))
    throttled = await client.ask(again, 12, FetchResponse)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    await limit(broker, "consumer_byte_rate", None)
    other = broker.client()
    later = await other.ask(fetch_request(TOPIC, offset=0, session=(opened.session_id, 2)), 12, FetchResponse)
    assert later.responses[0].partitions[0].records


async def test_without_quotas_nobody_is_asked(broker: InProcess) -> None:
    await limit(broker, "producer_byte_rate", 1)
    await limit(broker, "producer_byte_rate", None)
    assert (await produced(broker.client(), 12)).throttle_time_ms == 0
    assert broker.server.broker.fetches.quotas is None


async def test_who_takes_more_time_than_its_share_is_throttled_for_a_window_at_most(broker: InProcess) -> None:
    await limit(broker, "request_percentage", 0.000001)
    answer = await broker.client().ask(ListGroupsRequest(), 5, ListGroupsResponse)
    assert answer.throttle_time_ms == 1_000


async def test_a_large_answer_that_a_thread_encodes_has_the_throttle_time_as_well(broker: InProcess) -> None:
    await limit(broker, "request_percentage", 0.000001)
    client = broker.client()
    names = [f"a group without members {number}" for number in range(1_000)]
    answer = await client.ask(DescribeGroupsRequest(groups=names), 5, DescribeGroupsResponse)
    assert (answer.throttle_time_ms, len(answer.groups)) == (1_000, len(names))
    assert not client.connection.is_read_from


async def test_a_rejection_has_the_throttle_time(broker: InProcess) -> None:
    await limit(broker, "request_percentage", 0.000001)
    heartbeat = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
    answer = await broker.client().ask(heartbeat, 4, HeartbeatResponse)
    assert (answer.error_code, answer.throttle_time_ms) == (ErrorCode.INVALID_GROUP_ID, 1_000)


async def test_a_produce_without_an_answer_counts(broker: InProcess) -> None:
    await limit(broker, "producer_byte_rate", 1000)
    client = broker.client()
    client.send(request_frame(produce_request(TOPIC, (0, LARGE), acks=0), 12))
    await broker.settled()
    assert client.wire.take() == []
    assert not client.connection.is_read_from


async def test_an_address_that_connects_too_often_waits_and_is_turned_away(broker: InProcess) -> None:
    await limit(broker, "connection_creation_rate", 1, "ip", "127.0.0.1")
    served, held = broker.client(), broker.client()
    assert await served.ask(ListGroupsRequest(), 5, ListGroupsResponse)
    held.send(request_frame(ListGroupsRequest(), 5))
    await broker.settled()
    assert held.wire.take() == []
    await limit(broker, "connection_creation_rate", None, "ip", "127.0.0.1", served)
    assert await broker.client().ask(ListGroupsRequest(), 5, ListGroupsResponse)


async def test_the_table_of_apis_has_the_throttle_time(broker: InProcess) -> None:
    await limit(broker, "request_percentage", 0.000001)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = await broker.client().ask(request, 4, ApiVersionsResponse)
    assert (answer.error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 1_000)
