"""The points of a push: OpenTelemetry's protobuf, decoded and bounded. Decoding is slow: call it from a thread.

Kafka's clients push gauges and sums; histograms and summaries are ignored.

Source: opentelemetry-proto, metrics/v1/metrics.proto; KIP-714.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, MetricsData

from broker.telemetry.point import OWN_LABELS, TOTAL, Point, PointKind
from coordinator.telemetry.subscriptions import MAX_LABEL
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, ScopeMetrics, Sum

MAX_POINTS: Final = 5_000
"""Maximum number of points in a push. A point takes about 7 µs in a thread that shares the interpreter with the event
loop.
"""
MAX_LABELS: Final = 16

PREFIX: Final = "clients_"
NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")


def decoded(data: bytes) -> MetricsData:
    """Returns the message. Raises INVALID_RECORD."""
    message = MetricsData()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        reason = f"the telemetry is not OpenTelemetry's MetricsData: {error}"
        raise KafkaError(ErrorCode.INVALID_RECORD, reason) from None
    return message


def points(data: bytes) -> list[Point]:
    """Returns the first MAX_POINTS points of a push; leaves out points whose value isn't a number.

    Raises INVALID_RECORD.
    """
    metrics = islice(_metrics(decoded(data)), MAX_POINTS)  # metrics without points take time as well
    all_points = (point for metric, common in metrics for point in _of_metric(metric, common))
    return [point for point in islice(all_points, MAX_POINTS) if math.isfinite(point.value)]


def _metrics(message: MetricsData) -> Iterator[tuple[Metric, Mapping[str, str]]]:
    for scope, common in islice(_scopes(message), MAX_POINTS):
        for metric in scope.metrics:
            yield metric, common


def _scopes(message: MetricsData) -> Iterator[tuple[ScopeMetrics, Mapping[str, str]]]:
    for resource in islice(message.resource_metrics, MAX_POINTS):
        common = labels(resource.resource.attributes)
        for scope in resource.scope_metrics:
            yield scope, common


def _of_metric(metric: Metric, common: Mapping[str, str]) -> Iterator[Point]:
    kind = kind_of(metric)
    if kind is None:
        return
    name = name_of(metric.name, kind)
    data: Gauge | Sum = metric.gauge if metric.HasField("gauge") else metric.sum
    for point in data.data_points:
        value = point.as_double if point.HasField("as_double") else float(point.as_int)
        own = {**common, **labels(point.attributes)}
        yield Point(name, tuple(islice(sorted(own.items()), MAX_LABELS)), kind, value)


def kind_of(metric: Metric) -> PointKind | None:
    """Returns the kind of a metric's points; None for a kind that no Kafka client pushes."""
    if metric.HasField("gauge"):
        return PointKind.GAUGE
    if not metric.HasField("sum"):
        return None
    if not metric.sum.is_monotonic:
        return PointKind.GAUGE
    is_delta = metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
    return PointKind.DELTA if is_delta else PointKind.CUMULATIVE


def name_of(text: str, kind: PointKind) -> str:
    """Returns a metric's name: `org.apache.kafka.producer.topic.byte.rate` is
    `clients_org_apache_kafka_producer_topic_byte_rate`."""
    name = PREFIX + NO_NAME.sub("_", text[:MAX_LABEL])
    return name if kind is PointKind.GAUGE or name.endswith(TOTAL) else name + TOTAL


def labels(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Returns attributes as labels; attributes whose values are lists or maps are left out."""
    texts = {}
    for attribute in islice(attributes, MAX_LABELS):
        value = attribute.value
        field = value.WhichOneof("value")
        if field in ("string_value", "int_value", "double_value", "bool_value"):
            texts[label_name(attribute.key)] = str(getattr(value, field))[:MAX_LABEL]
    return {name: text for name, text in texts.items() if name not in OWN_LABELS}


def label_name(key: str) -> str:
    """Returns the name of a label. It never begins with two underscores, which Prometheus reserves for itself."""
    name = NO_NAME.sub("_", key[:MAX_LABEL])
    is_none = not name or name[0].isdigit() or name.startswith("__")
    return f"_{name.lstrip('_')}" if is_none else name
