"""Tests that unmodified clients push the metrics that a subscription requests (KIP-714): librdkafka and Java."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.interop import jvm
from tests.interop.brokers import Odradek
from tests.interop.processes import free_port, run
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only

WITHIN_S = 60
TOPIC = "pushed"


class Collector:
    """A receiver of OTLP over HTTP on a free port."""

    def __init__(self) -> None:
        self.received: list[ExportMetricsServiceRequest] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def clients(self) -> set[str]:
        """Returns the client ids of the received metrics, which the broker adds."""
        return {
            attribute.value.string_value
            for request in list(self.received)
            for resource in request.resource_metrics
            for attribute in resource.resource.attributes
            if attribute.key == "client_id"
        }


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


@pytest.fixture
def metrics_address() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def broker(tmp_path: Path, collector: Collector, metrics_address: str) -> Iterator[Odradek]:
    receivers = {
        "odradek.metrics.listener": metrics_address,
        "odradek.telemetry.metrics": "true",
        "odradek.telemetry.topic": TOPIC,
        "odradek.telemetry.otlp.endpoint": collector.url,
    }
    broker = Odradek(tmp_path / "data", receivers)
    broker.start()
    yield broker
    broker.stop()
    broker.forget()


def test_clients_as_they_are_push_to_all_receivers(broker: Odradek, collector: Collector, metrics_address: str) -> None:
    def scrape() -> str:
        with urllib.request.urlopen(f"http://{metrics_address}/metrics") as page:
            return str(page.read(), "utf-8")

    def series(client_id: str) -> list[str]:
        return [line for line in scrape().splitlines() if line.startswith("clients_") and f'"{client_id}"' in line]

    arguments = ("--alter", "--name", "all", "--metrics", "*", "--interval", "2000")
    jvm.tool("kafka-client-metrics", "--bootstrap-server", broker.bootstrap, *arguments)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "of-librdkafka"})
    producer.produce("t", b"x")
    load = ("--num-records", "800", "--record-size", "10", "--throughput", "100", "--producer-props")
    settings = (f"bootstrap.servers={broker.bootstrap}", "client.id=of-java")
    jvm.tool("kafka-producer-perf-test", "--topic", "t", *load, *settings)
    queued = "clients_org_apache_kafka_producer_record_queue_time_avg"
    wait_until(lambda: any(queued in line for line in series("of-java")))  # until four seconds after its last push
    producer.produce("t", b"x")

    names = {"of-librdkafka", "of-java"}
    wait_until(lambda: collector.clients() >= names, lambda: f"the collector has {collector.clients()}")
    wait_until(lambda: series("of-librdkafka"), lambda: "librdkafka's metrics are not in /metrics")
    read = run(["kcat", "-b", broker.bootstrap, "-C", "-t", TOPIC, "-e", "-f", "%h\\n"]).stdout.decode()
    assert all(f"client_id={name}," in read for name in names)
    producer.flush()
