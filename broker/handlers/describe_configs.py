"""DescribeConfigs (32): describes the options of topics, brokers, groups and client metrics, with their sources.

v1 adds sources and synonyms (KIP-226), v2 is as v1, v3 adds types and documentation (KIP-569), v4 is flexible.
The levels of loggers (KIP-412) are the answering process's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.config.describe import (
    DescribedConfig,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_loggers,
    describe_topic,
)
from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.handlers.alter_configs import of_configs
from broker.logging import levels
from broker.request.authorisation import Operation
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.topics import names
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.numbers import whole_number

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
"""The default message of INVALID_REQUEST, as Apache Kafka's clients have it."""


async def describe_configs(call: Call[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Describes the resources; a type that does not exist makes the request malformed, and none of its resources is
    described."""
    if any(ResourceType.of(resource.resource_type) not in ROWS for resource in call.request.resources):
        malformed = KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED)
        return DescribeConfigsResponse(results=[failed(resource, malformed) for resource in call.request.resources])
    results = await call.turns().map(partial(describe, call), call.request.resources)
    return DescribeConfigsResponse(results=results)


def describe(call: Call[DescribeConfigsRequest], resource: DescribeConfigsResource) -> DescribeConfigsResult:
    try:
        rows = ROWS[ResourceType.of(resource.resource_type)](call, resource.resource_name)
    except KafkaError as error:
        return failed(resource, error)
    keys = frozenset(resource.configuration_keys or ())  # a request may have 200,000 of them
    configs = [entry(call, row) for row in rows if not keys or row.name in keys]
    call.count(len(configs))
    return DescribeConfigsResult(
        error_code=0,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def failed(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def topic_rows(call: Call[DescribeConfigsRequest], name: str) -> list[DescribedConfig]:
    names.validate(name)
    if call.host.image.topic(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic(call.host.layers, call.host.image.topic_configs(name))


def broker_rows(call: Call[DescribeConfigsRequest], name: str) -> list[DescribedConfig]:
    node_id = call.host.config.node_id
    if not name:
        return describe_all_brokers(call.host.layers)
    if broker_id(name) != node_id:
        message = f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return describe_broker(call.host.layers)


def logger_rows(call: Call[DescribeConfigsRequest], name: str) -> list[DescribedConfig]:
    node_id = call.host.config.node_id
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if broker_id(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} but received {name}")
    return describe_loggers(levels.described())


def broker_id(name: str) -> int:
    """Returns the broker id in a resource's name. Raises KafkaError(INVALID_REQUEST)."""
    number = whole_number(name)
    if number is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return number


def group_rows(call: Call[DescribeConfigsRequest], name: str) -> list[DescribedConfig]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    own = call.host.image.configs(ConfigResource(ResourceType.GROUP, name))
    return describe_group(call.host.layers, own)


def client_metrics_rows(call: Call[DescribeConfigsRequest], name: str) -> list[DescribedConfig]:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return describe_client_metrics(call.host.image.configs(ConfigResource(ResourceType.CLIENT_METRICS, name)))


ROWS: dict[ResourceType, Callable[[Call[DescribeConfigsRequest], str], list[DescribedConfig]]] = {
    ResourceType.TOPIC: topic_rows,
    ResourceType.BROKER: broker_rows,
    ResourceType.BROKER_LOGGER: logger_rows,
    ResourceType.GROUP: group_rows,
    ResourceType.CLIENT_METRICS: client_metrics_rows,
}


def entry(call: Call[DescribeConfigsRequest], row: DescribedConfig) -> DescribeConfigsResourceResult:
    """Returns a row as the response has it, without the value of a sensitive option."""
    synonyms = [
        DescribeConfigsSynonym(name=name, value=None if row.sensitive else value, source=source)
        for name, value, source in (row.synonyms if call.request.include_synonyms else ())
    ]
    return DescribeConfigsResourceResult(
        name=row.name,
        value=None if row.sensitive else row.value,
        read_only=row.read_only,
        is_default=row.is_default,
        config_source=row.source,
        is_sensitive=row.sensitive,
        synonyms=synonyms,
        config_type=row.type,
        documentation=row.doc if call.request.include_documentation else None,
    )


API = Api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    describe_configs,
    authorize=of_configs(Operation.DESCRIBE_CONFIGS, "results", knows_all_types=True),
    entries=(Entries("resources", "results"),),
)
