"""The points of a push, and the series that they make."""

from __future__ import annotations

import math

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from broker.telemetry.otlp import enriched
from broker.telemetry.points import MAX_POINTS, PointKind, points
from broker.telemetry.series import ClientSeries
from coordinator.telemetry.subscriptions import ClientAttributes
from protocol.errors import ErrorCode, KafkaError
from tests.broker.telemetry.pushes import CUMULATIVE, DELTA, data, gauge, total

ONE = ClientAttributes("one", "orders", "unknown", "unknown", "127.0.0.1", "1")
OTHER = ONE._replace(client_instance_id="other", client_id=None)


def test_names_and_labels_are_prometheus_s() -> None:
    (point,) = points(data(gauge("org.apache.kafka.producer.topic-x.rate", 1.5, topic="t", **{"9-a.b": "c"}), rack="r"))
    assert point.name == "clients_org_apache_kafka_producer_topic_x_rate"
    assert point.labels == (("_9_a_b", "c"), ("rack", "r"), ("topic", "t"))
    assert (point.kind, point.value) == (PointKind.GAUGE, 1.5)


def test_a_sum_that_grows_is_a_counter() -> None:
    pushed = points(
        data(
            total("a", 1, DELTA),
            total("b.total", 2, CUMULATIVE),
            total("c", 3, CUMULATIVE, only_grows=False),
            Metric(name="d"),
        )
    )
    assert [(point.name, point.kind, point.value) for point in pushed] == [
        ("clients_a_total", PointKind.DELTA, 1),
        ("clients_b_total", PointKind.CUMULATIVE, 2),
        ("clients_c", PointKind.GAUGE, 3),
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_left_out(value: float) -> None:
    assert points(data(gauge("a", value))) == []


def test_a_push_has_an_end() -> None:
    many = data(*(gauge(f"m{number}", number) for number in range(MAX_POINTS + 10)))
    assert len(points(many)) == MAX_POINTS
    (long,) = points(data(gauge("n" * 9_999, 1, label="v" * 9_999)))
    assert len(long.name) < 300
    assert len(long.labels[0][1]) == 256


@pytest.mark.parametrize("broken", [b"\x0a\xff", b"\x0a\x7f" + b"x", b"\xff" * 40, b"\x08"])
def test_bytes_that_are_no_metrics_are_refused(broken: bytes) -> None:
    with pytest.raises(KafkaError) as refused:
        points(broken)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_deltas_add_up_and_a_gauge_is_what_it_was_last() -> None:
    series = ClientSeries()
    for value in (1, 2):
        pushed = points(data(total("d", value, DELTA), total("c", value, CUMULATIVE), gauge("g", value)))
        series.add(ONE, pushed, 1000, now_ms=0)
    assert {one.name: one.value for one in series.all()} == {
        "clients_d_total": 3, "clients_c_total": 2, "clients_g": 2,
    }  # fmt: skip
    assert {tuple(one.labels.items()) for one in series.all()} == {
        (("client_instance_id", "one"), ("client_id", "orders"))
    }


def test_a_client_cannot_call_itself_another() -> None:
    series = ClientSeries()
    series.add(ONE, points(data(gauge("g", 1, client_instance_id="other", client_id="other"))), 1000, now_ms=0)
    (one,) = series.all()
    assert (one.labels["client_instance_id"], one.labels["client_id"]) == ("one", "orders")


def test_a_name_has_one_type() -> None:
    series = ClientSeries()
    series.add(ONE, points(data(gauge("a.total", 1))), 1000, now_ms=0)
    series.add(OTHER, points(data(total("a", 1, DELTA))), 1000, now_ms=0)
    assert [(one.name, one.is_counter) for one in series.all()] == [("clients_a_total", False)]
    assert series.left_out == 1


def test_one_that_misses_a_push_goes_with_its_series_and_names() -> None:
    series = ClientSeries()
    series.add(ONE, points(data(gauge("a.total", 1))), 1000, now_ms=0)
    series.expire(2000)
    assert series.count == 1
    series.expire(2001)
    assert (series.count, series.clients(), list(series.all())) == (0, [], [])
    series.add(OTHER, points(data(total("a", 1, DELTA))), 1000, now_ms=3000)
    assert [one.is_counter for one in series.all()] == [True]


def test_series_have_an_end_over_all_clients() -> None:
    series = ClientSeries(max_series=3)
    for client in (ONE, OTHER):
        series.add(client, points(data(gauge("a", 1), gauge("b", 1))), 1000, now_ms=0)
    assert (series.count, series.left_out) == (3, 1)


def test_a_collector_is_told_who_the_client_is() -> None:
    message = MetricsData.FromString(enriched(data(gauge("a", 1), rack="r"), {"client_id": "orders", "broker_id": "1"}))
    attributes = message.resource_metrics[0].resource.attributes
    assert {one.key: one.value.string_value for one in attributes} == {
        "rack": "r", "client_id": "orders", "broker_id": "1",
    }  # fmt: skip
