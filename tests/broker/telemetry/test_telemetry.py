"""Tests that a whole broker accepts the metrics that clients push (KIP-714)."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from protocol.config import ConfigError
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from protocol.types import NO_UUID
from tests.broker.inprocess import Client, InProcess
from tests.broker.metrics.scraping import OPTIONS, scraped
from tests.broker.telemetry.pushes import DELTA, data, gauge, total
from tests.waiting import until

METRICS = {**OPTIONS, "odradek.telemetry.metrics": "true"}
CLIENT_METRICS, SET = 16, 0
GZIP = 1
PUSH = data(gauge("org.a", 2, topic="t"), total("org.b", 3, DELTA))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, METRICS) as broker:
        await subscribe(broker, metrics="*", **{"interval.ms": "60000"})
        yield broker


async def subscribe(broker: InProcess, **configs: str) -> None:
    settings = [AlterableConfig(name=name, config_operation=SET, value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="all", configs=settings)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    response = await broker.client().ask(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0, response
    await broker.settled()


async def ask(client: Client, instance_id: bytes = NO_UUID) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return await client.ask(request, 0, GetTelemetrySubscriptionsResponse)


async def push(
    client: Client,
    subscription: GetTelemetrySubscriptionsResponse,
    metrics: bytes = PUSH,
    codec: int = 0,
    *,
    last: bool = False,
) -> int:
    request = PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        terminating=last,
        compression_type=codec,
        metrics=metrics,
    )
    return (await client.ask(request, 0, PushTelemetryResponse)).error_code


async def advertised(broker: InProcess) -> set[int]:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = await broker.client().ask(request, 3, ApiVersionsResponse)
    return {row.api_key for row in answer.api_keys}


async def test_clients_are_told_of_it_where_somebody_wants_it(broker: InProcess, tmp_path: Path) -> None:
    assert {71, 72} <= await advertised(broker)
    async with InProcess(tmp_path / "other", OPTIONS) as other:
        assert not {71, 72} & await advertised(other)
        assert (await ask(other.client())).requested_metrics == []  # as Apache Kafka answers one who asks all the same


async def test_a_client_is_given_an_id_and_what_to_push(broker: InProcess) -> None:
    subscription = await ask(broker.client())
    assert subscription.error_code == 0
    assert subscription.client_instance_id != NO_UUID
    assert (subscription.requested_metrics, subscription.push_interval_ms) == (["*"], 60_000)
    assert subscription.accepted_compression_types == [4, 3, 1, 2]
    assert (subscription.telemetry_max_bytes, subscription.delta_temporality) == (1 << 20, True)


async def test_what_is_pushed_is_in_the_metrics(broker: InProcess) -> None:
    client = broker.client()
    subscription = await ask(client)
    assert await push(client, subscription, gzip.compress(PUSH), GZIP) == 0
    assert await push(client, subscription, last=True) == 0
    values = await scraped(broker)
    mine = {name: value for name, value in values.items() if name.startswith("clients_")}
    assert sorted(mine.values()) == [2, 6]  # the sum of two deltas
    assert all("client_id=test" in name for name in mine)
    assert any(name.startswith("clients_org_b_total{") for name in mine)
    assert values["kafka_server_client_metrics_instance_count{}"] == 1
    assert sum(name.startswith("odradek_telemetry_client_info{") for name in values) == 1


async def test_what_cannot_be_read_is_refused_and_changes_nothing(broker: InProcess) -> None:
    for metrics, codec in (
        (b"\xff" * 40, 0), (b"no gzip", GZIP), (gzip.compress(bytes(1 << 21)), GZIP), (PUSH, 4),
    ):  # fmt: skip
        client = broker.client()
        assert await push(client, await ask(client), metrics, codec) == ErrorCode.INVALID_RECORD
    values = await scraped(broker)
    assert not any(name.startswith("clients_") for name in values)


async def test_errors_have_apache_kafka_s_codes(broker: InProcess) -> None:
    client = broker.client()
    subscription = await ask(client)
    assert (await ask(client, subscription.client_instance_id)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert await push(client, subscription, codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await ask(client, subscription.client_instance_id)).error_code == 0
    assert await push(client, await ask(client), bytes(1 << 20 | 1)) == ErrorCode.TELEMETRY_TOO_LARGE
    for reserved in (NO_UUID, bytes(15) + b"\1"):
        subscription.client_instance_id = reserved
        assert await push(client, subscription) == ErrorCode.INVALID_REQUEST


async def test_a_subscription_that_changes_is_told_at_once(broker: InProcess) -> None:
    client = broker.client()
    subscription = await ask(client)
    await subscribe(broker, metrics="org.a", match="client_id=test")
    assert await push(client, subscription) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = await ask(client, subscription.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (0, ["org.a"])
    await subscribe(broker, match="client_id=other")
    assert (await ask(client, subscription.client_instance_id)).requested_metrics == []


async def test_a_connection_takes_its_client_along(broker: InProcess) -> None:
    client = broker.client()
    for _ in range(3):
        await ask(client)
    assert len(client.connection.on_close) <= 2  # one callback, however many ids a client asks for
    assert len(broker.server.broker.telemetry) == 3
    client.connection.connection_lost(None)
    assert len(broker.server.broker.telemetry) == 2


async def test_a_topic_gets_what_is_pushed(tmp_path: Path) -> None:
    async with InProcess(tmp_path, {"odradek.telemetry.topic": "pushed"}) as broker:
        await subscribe(broker, metrics="*")
        client = broker.client()
        assert await push(client, await ask(client)) == 0
        queue = broker.server.broker.telemetry.queues["topic"]
        await until(lambda: not queue.held_bytes)
        assert (queue.delivered, queue.dropped) == (1, 0)
        assert broker.server.broker.replicas.leader("pushed", 0).high_watermark == 1


@pytest.mark.parametrize(("options", "reason"), [
    ({"odradek.telemetry.metrics": "true"}, "set odradek.metrics.listener"),
    ({"odradek.telemetry.otlp.endpoint": "localhost:4318"}, "is not an http or https URL"),
    ({"odradek.telemetry.otlp.endpoint": "file:///etc/passwd"}, "is not an http or https URL"),
    ({"odradek.telemetry.otlp.endpoint": "http://host:99999/"}, "is not an http or https URL"),
])  # fmt: skip
def test_receivers_that_cannot_be(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        BrokerConfig.parse(options)
