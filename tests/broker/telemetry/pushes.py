"""Metrics in the form in which clients push them."""

from __future__ import annotations

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def gauge(name: str, value: float, **labels: str) -> Metric:
    """Returns a gauge with one point."""
    metric = Metric(name=name)
    point = metric.gauge.data_points.add(as_double=value)
    for key, text in labels.items():
        point.attributes.add(key=key).value.string_value = text
    return metric


def total(name: str, value: int, temporality: AggregationTemporality.ValueType, *, only_grows: bool = True) -> Metric:
    """Returns a sum with one point."""
    metric = Metric(name=name)
    metric.sum.aggregation_temporality = temporality
    metric.sum.is_monotonic = only_grows
    metric.sum.data_points.add(as_int=value)
    return metric


def data(*metrics: Metric, **resource: str) -> bytes:
    """Returns a push."""
    message = MetricsData()
    added = message.resource_metrics.add()
    for key, text in resource.items():
        added.resource.attributes.add(key=key).value.string_value = text
    added.scope_metrics.add().metrics.extend(metrics)
    encoded: bytes = message.SerializeToString()
    return encoded
