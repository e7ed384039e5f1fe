"""Tests the pages of clients: members of groups, subscriptions, pushed metrics, and the producers of a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import pytest
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from console.telemetry import pushed_latencies
from odradek.testing import Broker
from tests.console.browser import Browser, produce, running_console
from tests.waiting import wait_until

TOPIC = "client-telemetry"


@pytest.fixture(scope="module")
def pushed_to() -> Iterator[Broker]:
    """A broker that writes what clients push to a topic."""
    with Broker({"odradek.telemetry.topic": TOPIC}) as broker:
        yield broker


@pytest.fixture(scope="module")
def browser(pushed_to: Broker) -> Iterator[Browser]:
    with running_console(pushed_to.bootstrap, "--allow-changes") as console:
        yield console.browser()


def push(**values: float) -> bytes:
    """Returns a push with gauges."""
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for name, value in values.items():
        metrics.add(name=f"org.apache.kafka.{name.replace('_', '.')}").gauge.data_points.add(as_double=value)
    return bytes(data.SerializeToString())


def test_members_of_groups_are_clients(browser: Browser, pushed_to: Broker) -> None:
    pushed_to.create_topic("read")
    reader = Consumer({"bootstrap.servers": pushed_to.bootstrap, "group.id": "readers", "client.id": "reader-9"})
    reader.subscribe(["read"])
    try:
        deadline = time.monotonic() + 30
        while not reader.assignment():
            assert time.monotonic() < deadline
            reader.poll(0.2)
        expected = "reader-9 /127.0.0.1 readers 1"
        with browser.events("/live/groups?q=readers") as events:
            assert any(expected in browser.get("/clients?q=reader-").words for _ in islice(events, 5))
    finally:
        reader.close()
    assert "No client has “zebra”" in browser.get("/clients?q=zebra").words


def test_a_client_pushes_its_version_and_latencies(browser: Browser, pushed_to: Broker) -> None:
    assert "There are no subscriptions" in browser.get("/clients/telemetry").words
    fields = {"name": "all", "metrics": "*", "interval.ms": "1000"}
    plan = browser.change("/clients/telemetry/subscribe", **fields)
    assert "metrics – *" in plan.words
    assert "odradek config set client-metrics all 'metrics=*' interval.ms=1000" in plan.words
    assert "all * 1000" in browser.confirm("/clients/telemetry/subscribe", plan).words
    pushed_to.create_topic("measured")
    producer = Producer({"bootstrap.servers": pushed_to.bootstrap, "client.id": "maker-1"})
    deadline = time.monotonic() + 60
    while "maker-1 confluent-kafka-python" not in (words := browser.get("/clients/telemetry").words):
        assert time.monotonic() < deadline, words
        producer.produce("measured", b"x")
        producer.flush(5)
    plan = browser.change("/clients/telemetry/subscribe", name="all", remove="yes")
    assert "There are no subscriptions" in browser.confirm("/clients/telemetry/subscribe", plan).words
    assert browser.change("/clients/telemetry/subscribe", name="all", remove="yes").status == 409


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"metrics": ""}, {"interval.ms": "soon"}, {"interval.ms": "-1"}, {"match": "nonsense"}]
)
def test_a_wrong_subscription_is_not_planned(browser: Browser, wrong: dict[str, str]) -> None:
    answer = browser.change("/clients/telemetry/subscribe", **{"name": "wrong", "metrics": "*", **wrong})
    assert answer.status in (400, 409)


def test_a_hostile_push_is_harmless(browser: Browser, pushed_to: Broker) -> None:
    if TOPIC not in browser.get("/topics?internal=1").text:
        produce(pushed_to.bootstrap, TOPIC, [b""], key=b"empty")
    headers: list[tuple[str, str | bytes | None]] = [("client_id", b"<script>\xff"), ("principal", None)]
    produce(pushed_to.bootstrap, TOPIC, [b"\xff" * 100], key=b"\xfe", headers=headers)
    page = browser.get("/clients/telemetry")
    assert page.status == 200
    assert "<script>\ufffd" not in page.text
    assert "&lt;script&gt;" in page.text


def test_latencies_are_the_largest_of_a_metric() -> None:
    data = push(producer_node_request_latency_avg=3.5, consumer_node_request_latency_avg=9.0, other=1)
    assert pushed_latencies(data) == {"request": 9.0}
    assert pushed_latencies(push(producer_record_queue_time_avg=float("nan"))) == {}
    assert pushed_latencies(b"\xff\xff") == {}
    assert pushed_latencies(b"\x00" * 2_000_000) == {}


def test_a_topic_has_its_producers(browser: Browser, pushed_to: Broker) -> None:
    pushed_to.create_topic("written", partitions=1)
    assert "No idempotent or transactional producer" in browser.get("/topics/written/producers").words
    producer = Producer({"bootstrap.servers": pushed_to.bootstrap, "transactional.id": "w-1"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("written", b"x")
    producer.flush()
    page = browser.get("/topics/written/producers?sort=-partition")
    assert "offset 0" in page.words
    assert 'action="/transactions/abort"' in page.text
    producer.commit_transaction()
    wait_until(lambda: "offset 0" not in browser.get("/topics/written/producers").words)  # the marker is written later
    words = browser.get("/topics/written/producers").words
    assert "1 rows" in words or "Transaction since" in words


def test_a_broker_that_keeps_no_pushes_is_said(broker: Broker) -> None:
    with running_console(broker.bootstrap) as console:
        words = console.browser().get("/clients/telemetry").words
    assert "No API of Kafka returns what clients push" in words
    assert "odradek.telemetry.topic" in words
