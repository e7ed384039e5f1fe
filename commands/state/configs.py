"""Reads and changes the configs of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import explain, misuse, raise_if
from commands.printing import Row
from protocol.config import ConfigSource
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceKind(IntEnum):
    """The kinds of config resources (org.apache.kafka.common.config.ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


KINDS: Final = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "logger": ResourceKind.LOGGER,
    "client-metrics": ResourceKind.CLIENT_METRICS,
    "group": ResourceKind.GROUP,
}
"""The resource kinds by their names on the command line."""

PER_BROKER: Final = (ResourceKind.BROKER, ResourceKind.LOGGER)
"""The kinds that only the broker itself can describe and change."""

CLUSTER_DEFAULT: Final = ""
"""The broker name that stands for the defaults of all brokers."""

SET, DELETE, APPEND, SUBTRACT = range(4)

SOURCES: Final[dict[int, str]] = {
    ConfigSource.TOPIC: "topic",
    ConfigSource.BROKER: "broker",
    ConfigSource.DEFAULT_BROKER: "cluster",
    ConfigSource.STATIC_BROKER: "file",
    ConfigSource.DEFAULT: "default",
    ConfigSource.BROKER_LOGGER: "logger",
    7: "client-metrics",
    8: "group",
}
TYPES: Final = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")


class ConfigOwner(NamedTuple):
    """A config resource."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name.lower().replace('_', '-')} {self.name or '(all)'}"


class ConfigChange(NamedTuple):
    """A change of one config: SET, DELETE, APPEND or SUBTRACT."""

    name: str
    operation: int
    value: str | None = None


async def describe_configs(
    cluster: ClusterClient, resource: ConfigOwner, keys: Sequence[str] | None = None, *, documentation: bool = False
) -> list[DescribeConfigsResourceResult]:
    """Returns a resource's configs by name. Raises CommandError."""
    named_keys = list(keys) if keys is not None else None
    entry = DescribeConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configuration_keys=named_keys
    )
    request = DescribeConfigsRequest(resources=[entry], include_synonyms=True, include_documentation=documentation)
    if resource.kind in PER_BROKER and resource.name != CLUSTER_DEFAULT:
        answer = await cluster.node(broker_id(resource), request, DescribeConfigsResponse)
    else:
        answer = await cluster.any(request, DescribeConfigsResponse)
    for result in answer.results:
        raise_if(str(resource), result.error_code, result.error_message)
        return sorted(result.configs, key=lambda config: config.name)
    return []


async def alter_configs(
    cluster: ClusterClient, resource: ConfigOwner, changes: Iterable[ConfigChange], *, dry_run: bool = False
) -> Row:
    """Changes configs, all or none. Returns a row with the result."""
    listed = list(changes)
    entry = AlterConfigsResource(
        resource_type=resource.kind,
        resource_name=resource.name,
        configs=[AlterableConfig(name=name, config_operation=how, value=value) for name, how, value in listed],
    )
    request = IncrementalAlterConfigsRequest(resources=[entry], validate_only=dry_run)
    if resource.kind in PER_BROKER and resource.name != CLUSTER_DEFAULT:
        answer = await cluster.node(broker_id(resource), request, IncrementalAlterConfigsResponse)
    else:
        answer = await cluster.controller(request, IncrementalAlterConfigsResponse)
    error = next(
        (explain(result.error_code, result.error_message) for result in answer.responses if result.error_code), None
    )
    row: dict[str, object] = {"kind": resource.kind.name.lower(), "name": resource.name}
    return {**row, "error": error} if error else {**row, "result": "would be changed" if dry_run else "changed"}


def broker_id(resource: ConfigOwner) -> int:
    """Returns the broker id that a resource names. Raises CommandError."""
    if not resource.name.isdecimal():
        raise misuse(f"{resource}: expected a broker's id, such as 1, or all for the defaults of all brokers")
    return int(resource.name)


def config_row(config: DescribeConfigsResourceResult) -> dict[str, object]:
    """Returns a config as a row."""
    return {
        "config": config.name,
        "value": "(secret)" if config.is_sensitive else config.value,
        "source": SOURCES.get(config.config_source, "unknown"),
        "type": TYPES[config.config_type] if config.config_type < len(TYPES) else "unknown",
        "read_only": config.read_only,
    }


def is_own(config: DescribeConfigsResourceResult) -> bool:
    """True if the value was set for this resource itself."""
    return config.config_source in (ConfigSource.TOPIC, ConfigSource.BROKER, ConfigSource.BROKER_LOGGER, 7, 8)


async def own_configs(cluster: ClusterClient, resources: Sequence[ConfigOwner]) -> list[Mapping[str, str | None]]:
    """Returns the configs that were set for each resource."""
    described = await cluster.together(describe_configs(cluster, resource) for resource in resources)
    return [{config.name: config.value for config in configs if is_own(config)} for configs in described]


async def config_of_topics(cluster: ClusterClient, topics: Iterable[str], name: str) -> dict[str, str]:
    """Returns the value of one config for each topic. Raises CommandError."""
    entries = [
        DescribeConfigsResource(resource_type=ResourceKind.TOPIC, resource_name=topic, configuration_keys=[name])
        for topic in topics
    ]
    request = DescribeConfigsRequest(resources=entries, include_synonyms=False, include_documentation=False)
    values: dict[str, str] = {}
    for result in (await cluster.any(request, DescribeConfigsResponse)).results:
        raise_if(f"topic {result.resource_name}", result.error_code, result.error_message)
        for config in result.configs:
            values[result.resource_name] = config.value or ""
    return values
