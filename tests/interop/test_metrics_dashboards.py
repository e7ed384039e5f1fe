"""Tests that every expression of a dashboard returns series from a cluster under load, scraped by a real Prometheus.

`make test-metrics` tests the shipped dashboard; `DASHBOARDS=FOLDER` tests all dashboards in a folder, such as Strimzi's
or Grafana Labs'. Metrics of a JVM or of a container are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop.dashboards import Expression, expressions
from tests.interop.local import SOON_S
from tests.interop.prometheus import MONITORING, Prometheus, page, promtool, values
from tests.interop.watched import LAGS, Load, WatchedCluster, fall_behind

pytestmark = [pytest.mark.metrics, pytest.mark.odradek_only, pytest.mark.ci]

TOPICS = ["orders", "payments"]
ALONE = "alone"
"""A topic with one replica, so that a group's coordinator may have none of it."""
BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedCluster]:
    cluster = WatchedCluster(tmp_path_factory.mktemp("watched") / "cluster", {"min.insync.replicas": "2"})
    cluster.start()
    for topic in TOPICS:
        cluster.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    cluster.create(ALONE, [[1], [2], [3]])
    fall_behind(cluster.bootstrap, ALONE, 500)
    load = Load(cluster.bootstrap, TOPICS)
    load.start()
    yield cluster
    load.stop()
    assert cluster.stop() == 0
    cluster.forget()


@pytest.fixture(scope="module")
def prometheus(cluster: WatchedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), cluster.targets)
    prometheus.start()
    prometheus.scraped(10)
    yield prometheus
    prometheus.stop()
    prometheus.forget()


def dashboards(config: pytest.Config) -> list[Path]:
    folder = config.getoption("--dashboards")
    return sorted([*(MONITORING / "dashboards").glob("*.json"), *(folder.glob("**/*.json") if folder else ())])


def test_every_expression_returns_series(prometheus: Prometheus, request: pytest.FixtureRequest) -> None:
    drawn = [one for path in dashboards(request.config) for one in expressions(path)]
    queries = [one for one in drawn if one.of_the_broker]
    print(f"\n{len(drawn)} expressions, {len(queries)} of them of a broker; the others:")
    print(*(one for one in drawn if not one.of_the_broker), sep="\n")
    shipped = {path.stem for path in (MONITORING / "dashboards").glob("*.json")}
    assert shipped
    assert shipped <= {one.dashboard for one in queries}
    deadline = time.monotonic() + SOON_S
    empty: list[Expression] = queries
    while empty := [one for one in empty if not prometheus.query(one.of_the_broker)]:
        assert time.monotonic() < deadline, "\n".join(map(str, empty))
        time.sleep(1)  # series come with scrapes


def test_what_is_shipped_is_what_prometheus_takes() -> None:
    promtool("check", "config", str(MONITORING / "prometheus.yaml"))
    promtool("check", "rules", str(MONITORING / "alerts.yaml"))


def one(prometheus: Prometheus, expression: str) -> float:
    """Returns the value of an expression that has one series."""
    (series,) = prometheus.query(expression)
    return series.value


def test_the_quorum_is_the_same_to_all(prometheus: Prometheus, cluster: WatchedCluster) -> None:
    raft = "kafka_server_raftmetrics"
    leaders = prometheus.query(f"{raft}_current_leader")
    assert [series.value for series in leaders] == [0] * 4
    assert len({series.value for series in prometheus.query(f"{raft}_current_epoch")}) == 1
    states = {one.labels["pod"]: one.labels["current_state"] for one in prometheus.query(f"{raft}_current_state")}
    assert states == {"my-cluster-controller": "leader", **{f"my-cluster-broker-{n}": "observer" for n in BROKERS}}
    assert one(prometheus, f'{raft}_append_records_rate{{pod="my-cluster-controller"}}') > 0
    assert min(one.value for one in prometheus.query(f'{raft}_fetch_records_rate{{pod!="my-cluster-controller"}}')) > 0
    behind = prometheus.query("kafka_server_brokermetadatametrics_last_applied_record_lag_ms")
    assert len(behind) == 3
    assert max(series.value for series in behind) < 5_000, "the controller writes something each half second"
    channels = prometheus.query('rate(kafka_server_raftchannelmetrics_incoming_byte_total{pod=~".*broker.*"}[10s])')
    assert len(channels) == 3
    assert min(series.value for series in channels) > 0


def test_brokers_follow_each_other(prometheus: Prometheus) -> None:
    lags = prometheus.query('kafka_server_fetcherlagmetrics_consumerlag{topic="orders"}')
    assert len(lags) == 6, "three partitions, each with two followers"
    assert {series.labels["clientId"][:22] for series in lags} == {"ReplicaFetcherThread-0"}
    assert one(prometheus, "count(kafka_server_replicafetchermanager_maxlag)") == 3
    assert one(prometheus, "sum(kafka_server_replicafetchermanager_failedpartitionscount)") == 0
    followers = 'rate(kafka_network_requestmetrics_requests_total{request="FetchFollower"}[10s])'
    assert min(series.value for series in prometheus.query(followers)) > 0
    for quantile in ("0.50", "0.99", "0.999"):
        times = f'kafka_network_requestmetrics_totaltimems{{request="FetchFollower",quantile="{quantile}"}}'
        assert len(prometheus.query(times)) == 3
    assert one(prometheus, "sum(kafka_server_replicamanager_underreplicatedpartitions)") == 0


def test_a_sum_over_brokers_is_the_clusters(prometheus: Prometheus) -> None:
    assert one(prometheus, 'sum(kafka_topic_partitions{topic="orders"})') == 3
    assert one(prometheus, 'count(kafka_topic_partition_leader{topic="orders"})') == 3
    assert one(prometheus, "sum(kafka_controller_kafkacontroller_activecontrollercount)") == 1
    assert one(prometheus, "max(kafka_brokers)") == 3


def test_the_lag_of_partitions_without_a_copy_on_the_coordinator_is_told(prometheus: Prometheus) -> None:
    lags = prometheus.query(f'kafka_consumergroup_lag{{consumergroup="{LAGS}",topic="{ALONE}"}}')
    assert sorted(series.labels["partition"] for series in lags) == ["0", "1", "2"]
    assert sum(series.value for series in lags) >= 500
    assert one(prometheus, f'kafka_consumergroup_lag_sum{{consumergroup="{LAGS}",topic="{ALONE}"}}') >= 500


def test_every_process_is_healthy_and_ready(cluster: WatchedCluster) -> None:
    for node_id in range(4):
        assert page(cluster.metrics(node_id), "/healthz") == "ok\n"
        assert page(cluster.metrics(node_id), "/readyz") == "ready\n"


def test_metrics_of_a_cluster_are_what_clients_did(cluster: WatchedCluster) -> None:
    cluster.create("counted", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(999):
        producer.produce("counted", b"x", partition=number % 3)
    assert producer.flush(SOON_S) == 0
    name, labels = "kafka_server_brokertopicmetrics_messagesin_total", frozenset({("topic", "counted")})
    deadline = time.monotonic() + SOON_S
    while True:
        pages = [values(page(cluster.metrics(node_id))) for node_id in BROKERS]
        if [one.get((name, labels)) for one in pages] == [333, 333, 333]:
            return
        assert time.monotonic() < deadline, [one.get((name, labels)) for one in pages]
        time.sleep(1)  # a page is served again for a second
