"""Tests DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources, as clients see them."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.messages import alter_configs, incremental_alter_configs
from protocol.messages.broker_registration import BrokerRegistrationResponse
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.broker.asking import batch, produce
from tests.broker.inprocess import Client, InProcess
from tests.coordinator.cluster.given import registration

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
TOPIC_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 4, 5


async def describe(
    client: Client, kind: int, name: str, *keys: str, version: int = 4, documentation: bool = False
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=version > 0, include_documentation=documentation
    )
    (result,) = (await client.ask(request, version, DescribeConfigsResponse)).results
    return result


async def row(client: Client, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
    (config,) = (await describe(client, kind, name, key)).configs
    return config


async def alter(client: Client, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await client.ask(request, 1, incremental_alter_configs.IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code


async def test_a_topic_s_configs_say_where_they_come_from(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", segment_bytes="2000000")
    config = await row(client, TOPIC, "t", "segment.bytes")
    assert (config.value, config.config_source, config.read_only) == ("2000000", TOPIC_CONFIG, False)
    assert [(synonym.name, synonym.source) for synonym in config.synonyms] == [
        ("segment.bytes", TOPIC_CONFIG),
        ("log.segment.bytes", DEFAULT_CONFIG),
    ]
    assert (await row(client, TOPIC, "t", "flush.ms")).config_source == DEFAULT_CONFIG


async def test_documentation_is_told_to_who_asks(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    plain = await describe(client, TOPIC, "t", "retention.ms")
    documented = await describe(client, TOPIC, "t", "retention.ms", documentation=True)
    assert plain.configs[0].documentation is None
    assert documented.configs[0].documentation


async def test_a_change_acts_at_once(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    assert await alter(client, TOPIC, "t", ("max.message.bytes", SET, "100")) == ErrorCode.NONE
    assert (await produce(client, "t", batch(bytes(100)))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert await alter(client, TOPIC, "t", ("max.message.bytes", DELETE, None)) == ErrorCode.NONE
    assert (await produce(client, "t", batch(bytes(100)))).error_code == ErrorCode.NONE


async def test_lists_are_appended_to(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", cleanup_policy="compact")
    await alter(client, TOPIC, "t", ("cleanup.policy", APPEND, "delete"))
    assert (await row(client, TOPIC, "t", "cleanup.policy")).value == "compact,delete"


async def test_altering_as_a_whole_forgets_the_rest(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t", retention_ms="1000")
    configs = [alter_configs.AlterableConfig(name="segment.bytes", value="2000000")]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
    request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await client.ask(request, 2, alter_configs.AlterConfigsResponse)
    assert answer.responses[0].error_code == ErrorCode.NONE
    assert (await row(client, TOPIC, "t", "segment.bytes")).value == "2000000"
    assert (await row(client, TOPIC, "t", "retention.ms")).config_source == DEFAULT_CONFIG


async def test_the_broker_s_own_options(client: Client) -> None:
    assert (await row(client, BROKER, "1", "listeners")).config_source == STATIC_BROKER_CONFIG
    assert await alter(client, BROKER, "1", ("log.retention.ms", SET, "5")) == ErrorCode.NONE
    assert (await row(client, BROKER, "1", "log.retention.ms")).value == "5"
    assert await alter(client, BROKER, "1", ("num.partitions", SET, "5")) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (BROKER, "7", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 7"),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
    ],
)
async def test_resources_that_are_not(kind: int, name: str, code: int, message: str, client: Client) -> None:
    result = await describe(client, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


async def test_the_levels_of_loggers_are_described(client: Client) -> None:
    levels = {config.name: config.value for config in (await describe(client, LOGGER, "1")).configs}
    assert levels["root"] == "INFO"
    assert "broker.network.connection" in levels


async def test_what_has_configs_is_listed(broker: InProcess, client: Client) -> None:
    await broker.create_topic("t")
    await alter(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    await alter(client, CLIENT_METRICS, "m", ("interval.ms", SET, "60000"))
    metrics = await client.ask(ListConfigResourcesRequest(), 0, ListConfigResourcesResponse)
    assert [resource.resource_name for resource in metrics.config_resources] == ["m"]
    everything = await client.ask(ListConfigResourcesRequest(resource_types=[]), 1, ListConfigResourcesResponse)
    assert {(resource.resource_type, resource.resource_name) for resource in everything.config_resources} == {
        (GROUP, "g"),
        (CLIENT_METRICS, "m"),
        (LOGGER, "1"),
        (BROKER, "1"),
        (TOPIC, "t"),
    }
    unknown = await client.ask(ListConfigResourcesRequest(resource_types=[99]), 1, ListConfigResourcesResponse)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_change_is_held_against_what_is_in_force_by_then(client: Client) -> None:
    for threads in ("2", "4", "8"):
        assert await alter(client, BROKER, "", ("log.cleaner.threads", SET, threads)) == ErrorCode.NONE
    assert await alter(client, BROKER, "", ("log.cleaner.threads", SET, "17")) == ErrorCode.INVALID_REQUEST


async def test_a_broker_that_is_the_controller_too_takes_no_options_of_another(
    broker: InProcess, client: Client
) -> None:
    controller = broker.server.broker.controller
    cluster_id = broker.server.broker.image.cluster_id
    await controller.submit(
        registration(2, cluster_id=cluster_id, log_dirs=[b"directory-two---"]), BrokerRegistrationResponse
    )
    change = ("log.retention.ms", SET, "5")
    assert await alter(client, BROKER, "2", change) == ErrorCode.INVALID_REQUEST
    whole = alter_configs.AlterConfigsResource(
        resource_type=BROKER,
        resource_name="2",
        configs=[alter_configs.AlterableConfig(name="log.retention.ms", value="5")],
    )
    request = alter_configs.AlterConfigsRequest(resources=[whole], validate_only=False)
    (answer,) = (await client.ask(request, 2, alter_configs.AlterConfigsResponse)).responses
    assert answer.error_message == "Unexpected broker id, expected 1, but received 2"
    assert await alter(client, BROKER, "1", change) == ErrorCode.NONE


@pytest.mark.parametrize("digits", ["9" * 5_000, "-" + "9" * 5_000])
async def test_an_id_of_thousands_of_digits_is_none(client: Client, digits: str) -> None:
    for kind in (BROKER, LOGGER):
        assert await alter(client, kind, digits, ("root", SET, "INFO")) == ErrorCode.INVALID_REQUEST
        assert (await describe(client, kind, digits)).error_code == ErrorCode.INVALID_REQUEST


async def test_an_id_may_begin_with_thousands_of_zeros(client: Client) -> None:
    assert await alter(client, BROKER, "0" * 5_000 + "1", ("log.retention.ms", SET, "0" * 5_000 + "9")) == 0


async def test_a_pattern_that_is_nested_too_deeply_is_none(client: Client) -> None:
    match = "client_id=" + "(" * 5_000 + ")" * 5_000
    assert await alter(client, CLIENT_METRICS, "m", ("match", SET, match)) == ErrorCode.INVALID_CONFIG


async def test_a_limit_or_a_duration_of_thousands_of_digits_is_none(client: Client) -> None:
    limits = "127.0.0.1:" + "9" * 5_000
    changed = await alter(client, BROKER, "1", ("max.connections.per.ip.overrides", SET, limits))
    assert changed == ErrorCode.INVALID_REQUEST
    for duration in (f"P{'9' * 5_000}D", f"P{'9' * 19}D"):
        reset = ("share.auto.offset.reset", SET, f"by_duration:{duration}")
        assert await alter(client, GROUP, "g", reset) == ErrorCode.INVALID_CONFIG
