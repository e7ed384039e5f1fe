"""Tests the points of a push, and their series."""

from __future__ import annotations

import math

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from broker.telemetry.otlp import enriched
from broker.telemetry.point import PointKind
from broker.telemetry.points import MAX_POINTS, points
from broker.telemetry.series import ClientSeries
from coordinator.telemetry.subscriptions import MAX_LABEL, ClientAttributes
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
    assert series.places == 2
    series.expire(2001)
    assert (series.places, series.clients(), list(series.all())) == (0, [], [])
    series.add(OTHER, points(data(total("a", 1, DELTA))), 1000, now_ms=3000)
    assert [one.is_counter for one in series.all()] == [True]


def test_series_have_an_end_over_all_clients() -> None:
    series = ClientSeries(max_series=5)
    for client in (ONE, OTHER, ONE._replace(client_instance_id="third")):
        series.add(client, points(data(gauge("a", 1), gauge("b", 1))), 1000, now_ms=0)
    assert (series.places, series.left_out) == (5, 1 + 2)
    assert len(series.clients()) == 2
    series.add(ONE, points(data(gauge("a", 7))), 1000, now_ms=0)
    assert 7 in [one.value for one in series.all()], "what has its place keeps it"


def test_clients_without_series_have_an_end_too() -> None:
    series = ClientSeries(max_series=3)
    for number in range(10):
        series.add(ONE._replace(client_instance_id=str(number)), [], 1000, now_ms=0)
    assert len(series.clients()) == 3


def test_long_names_take_the_places_of_several() -> None:
    series = ClientSeries(max_series=10)
    series.add(ONE, points(data(gauge("a", 1, **{f"label{number}": "x" * 9_999 for number in range(5)}))), 1000, 0)
    assert series.places == 1 + 1 + 5 * (256 + 6) // 300
    series.expire(99_999)
    assert series.places == 0


def test_a_long_client_id_is_not_told_with_each_series() -> None:
    series = ClientSeries()
    series.add(ONE._replace(client_id="x" * 32_767), points(data(gauge("a", 1))), 1000, now_ms=0)
    (one,) = series.all()
    assert len(one.labels["client_id"]) == MAX_LABEL


def test_a_label_is_never_one_of_prometheus_s_own() -> None:
    names = {"__name__": "kafka_brokers", "__": "", "": "", "9": "", "_a": "", "ä": ""}
    (point,) = points(data(gauge("a", 1, **names)))
    assert [name for name, _ in point.labels] == ["_", "_9", "_a", "_name__"]


def test_a_counter_and_a_gauge_of_one_family_are_not_both_told() -> None:
    series = ClientSeries()
    series.add(ONE, points(data(total("a", 1, DELTA), gauge("a", 1))), 1000, now_ms=0)
    assert [one.name for one in series.all()] == ["clients_a_total"]


def test_what_has_no_points_is_not_read_without_end() -> None:
    message = MetricsData()
    for _ in range(MAX_POINTS):
        message.resource_metrics.add()
    message.resource_metrics.add().scope_metrics.add().metrics.append(gauge("a", 1))
    assert points(message.SerializeToString()) == []
    message = MetricsData()
    scopes = message.resource_metrics.add().scope_metrics
    for _ in range(MAX_POINTS):
        scopes.add()
    scopes.add().metrics.append(gauge("a", 1))
    assert points(message.SerializeToString()) == []
    flood = gauge("a", math.nan)
    for _ in range(MAX_POINTS):
        flood.gauge.data_points.add(as_double=math.nan)
    assert points(data(flood, gauge("b", 1))) == []


def test_a_collector_gets_no_more_than_the_client_has_sent_many_times_over() -> None:
    message = MetricsData()
    for _ in range(MAX_POINTS + 10):
        message.resource_metrics.add()
    handed_on = MetricsData.FromString(enriched(message.SerializeToString(), {"client_id": "x"}))
    assert len(handed_on.resource_metrics) == MAX_POINTS


def test_a_client_cannot_call_itself_another_to_a_collector() -> None:
    message = MetricsData.FromString(enriched(data(gauge("a", 1), client_id="other"), {"client_id": "orders"}))
    (attribute,) = message.resource_metrics[0].resource.attributes
    assert (attribute.key, attribute.value.string_value) == ("client_id", "orders")


def test_a_collector_is_told_who_the_client_is() -> None:
    message = MetricsData.FromString(enriched(data(gauge("a", 1), rack="r"), {"client_id": "orders", "broker_id": "1"}))
    attributes = message.resource_metrics[0].resource.attributes
    assert {one.key: one.value.string_value for one in attributes} == {
        "rack": "r", "client_id": "orders", "broker_id": "1",
    }  # fmt: skip
