"""What clients push (KIP-714), as an Odradek broker writes it to a topic: a client's software, and its latencies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from commands.client.cluster_client import ClusterClient
from commands.errors import raise_if
from commands.printing import Row
from commands.records.positions import READ_UNCOMMITTED
from commands.state.configs import ConfigOwner, ResourceKind, describe_configs
from console.filters import RecordFilter
from console.reading import RecordOpener
from console.scanning import RecordQuery, RecordScan
from protocol.lazy import lazy
from protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1 import metrics_pb2
else:  # with the first page that shows clients
    metrics_pb2 = lazy("opentelemetry.proto.metrics.v1.metrics_pb2")

TOPIC_CONFIG: Final = "odradek.telemetry.topic"
MAX_PUSHES: Final = 300
"""Pushes that are read, the newest first: those of as many clients, or of fewer that push often."""

MAX_PUSH_BYTES: Final = 1024 * 1024
MAX_METRICS: Final = 5000
PREFIX: Final = "org.apache.kafka."
LATENCIES: Final = {
    "producer.node.request.latency.avg": "request",
    "consumer.node.request.latency.avg": "request",
    "producer.request.latency.avg": "request",
    "producer.record.queue.time.avg": "queue",
    "consumer.fetch.manager.fetch.latency.avg": "fetch",
    "consumer.coordinator.commit.latency.avg": "commit",
}
"""The metrics that are shown, in milliseconds, by the column; of several values of a metric the largest."""


class PushedClients(NamedTuple):
    """The clients whose pushes were read."""

    topic: str
    """The topic of the pushes; empty if the brokers keep none."""
    rows: list[Row]


async def subscriptions(cluster: ClusterClient) -> list[Row]:
    """Returns a row for each subscription of metrics. Raises CommandError."""
    answer = await cluster.any(
        ListConfigResourcesRequest(resource_types=[int(ResourceKind.CLIENT_METRICS)]), ListConfigResourcesResponse
    )
    raise_if("the subscriptions", answer.error_code)
    rows: list[Row] = []
    for name in sorted(entry.resource_name for entry in answer.config_resources):
        configs = await describe_configs(cluster, ConfigOwner(ResourceKind.CLIENT_METRICS, name))
        rows.append({"name": name, **{config.name: config.value for config in configs}})
    return rows


async def pushed_clients(cluster: ClusterClient) -> PushedClients:
    """Returns the clients of the newest pushes. Raises CommandError."""
    nodes = await cluster.nodes()
    owner = ConfigOwner(ResourceKind.BROKER, str(nodes[0]))
    configs = {config.name: config.value for config in await describe_configs(cluster, owner, [TOPIC_CONFIG])}
    name = configs.get(TOPIC_CONFIG) or ""
    if not name:
        return PushedClients("", [])
    topic = await cluster.topic(name)
    places = [TopicPartition(name, part.partition_index) for part in topic.partitions]
    query = RecordQuery(places, READ_UNCOMMITTED, None, True, MAX_PUSHES, RecordFilter(), "hex", True)
    rows: dict[str, Row] = {}
    async with aclosing(RecordScan(cluster, query, RecordOpener.plain()).run()) as parts:
        async for part in parts:
            for shown in part.records:
                key = (shown.record.key or b"").decode(errors="replace")
                if key not in rows:
                    labels = {at: (value or b"").decode(errors="replace") for at, value in shown.record.headers}
                    latencies = pushed_latencies(shown.record.value or b"")
                    rows[key] = {**labels, "instance": key, "pushed": shown.record.timestamp, **latencies}
    return PushedClients(name, sorted(rows.values(), key=lambda row: str(row.get("client_id", ""))))


def pushed_latencies(data: bytes) -> dict[str, float]:
    """Returns the latencies in a push, by column; none if the bytes are no push."""
    if len(data) > MAX_PUSH_BYTES:
        return {}
    try:
        push = metrics_pb2.MetricsData.FromString(data)
    except Exception:  # protobuf's DecodeError: anybody may write to the topic
        return {}
    found: dict[str, float] = {}
    for name, value in _gauges(push):
        column = LATENCIES.get(name.removeprefix(PREFIX))
        if column is not None and math.isfinite(value):
            found[column] = max(found.get(column, value), value)
    return found


def _gauges(push: metrics_pb2.MetricsData) -> Iterator[tuple[str, float]]:
    count = 0
    for scope in (scope for resource in push.resource_metrics for scope in resource.scope_metrics):
        for metric in scope.metrics:
            for point in metric.gauge.data_points:
                count += 1
                if count > MAX_METRICS:
                    return
                yield metric.name, point.as_double if point.HasField("as_double") else float(point.as_int)
