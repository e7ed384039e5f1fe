"""Tests the placement of replicas in a mixed cluster by the operator: moves with and without throttles, preferred
leaders, consumers that read in their rack."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from broker.config.replication import RACK_AWARE
from tests.interop import jvm
from tests.interop.either_node import Make
from tests.interop.jvm import tool
from tests.interop.mixture import SOON_S, Cluster, log_bytes
from tests.interop.processes import run
from tests.waiting import eventually

pytestmark = pytest.mark.cluster

ODRADEK, OTHER_ODRADEK, APACHE = 1, 2, 3
PAIRS = [(ODRADEK, OTHER_ODRADEK)]
RECORD = b"x" * 1000
RECORDS, THROTTLE = 16_000, 2_000_000
"""Sixteen megabytes, of which two may be copied per second."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    makes = [Make.ODRADEK, Make.ODRADEK, Make.APACHE]
    cluster = Cluster(tmp_path_factory.mktemp("moves"), makes, replica__selector__class=RACK_AWARE)
    cluster.start()
    yield cluster
    cluster.forget()


def fill(cluster: Cluster, topic: str, records: int = RECORDS) -> None:
    failures: list[object] = []

    def report(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 20})
    for _ in range(records):
        producer.produce(topic, RECORD, partition=0, on_delivery=report)
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    assert not failures


class Reassignment:
    """kafka-reassign-partitions, for partition 0 of one topic."""

    def __init__(self, cluster: Cluster, topic: str, replicas: list[int]) -> None:
        moved = [{"topic": topic, "partition": 0, "replicas": replicas, "log_dirs": ["any"] * len(replicas)}]
        self._file = cluster.folder / f"{topic}.json"
        self._file.write_text(json.dumps({"version": 1, "partitions": moved}))
        self._server = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(self._file))

    def execute(self, *words: str) -> str:
        return tool("kafka-reassign-partitions", *self._server, "--execute", *words)

    def verify(self, *words: str) -> str:
        return tool("kafka-reassign-partitions", *self._server, "--verify", *words)


def throttles(cluster: Cluster) -> str:
    """Returns the throttles that are set on brokers and topics."""
    described = [
        tool("kafka-configs", "--bootstrap-server", cluster.bootstrap, "--describe", "--entity-type", kind)
        for kind in ("brokers", "topics")
    ]
    return "".join(line for text in described for line in text.splitlines() if "replication.throttled" in line)


@pytest.mark.parametrize(("leader", "follower"), PAIRS)
def test_a_throttled_reassignment_takes_its_time_and_the_replica_comes_back(
    cluster: Cluster, topic: str, leader: int, follower: int
) -> None:
    cluster.create(topic, [[leader]], min__insync__replicas="1")
    fill(cluster, topic)
    size_bytes = len(log_bytes(cluster.members[leader].data / f"{topic}-0"))
    there = Reassignment(cluster, topic, [leader, follower])
    there.execute("--throttle", str(THROTTLE))
    begun_s = time.monotonic()
    cluster.all_in_sync(topic, [[leader, follower]])
    # What comes before the first measurement is free: an answer, or several that are on their way.
    assert time.monotonic() - begun_s > 0.5 * size_bytes / THROTTLE
    assert "is completed" in there.verify()
    assert not throttles(cluster)
    cluster.assert_alike(topic, [[leader, follower]])

    Reassignment(cluster, topic, [follower]).execute()
    cluster.all_in_sync(topic, [[follower]])
    assert cluster.leaders(topic) == [follower]
    eventually(lambda: (cluster.members[leader].data / f"{topic}-0").exists(), False)
    assert len(log_bytes(cluster.members[follower].data / f"{topic}-0")) == size_bytes
    Reassignment(cluster, topic, [leader, follower]).execute()
    cluster.assert_alike(topic, [[leader, follower]])


@pytest.mark.parametrize(("leader", "follower"), PAIRS)
def test_consumers_read_from_the_follower_in_their_rack(
    cluster: Cluster, topic: str, leader: int, follower: int
) -> None:
    cluster.create(topic, [[leader, follower]])
    fill(cluster, topic, 1000)
    rack = f"rack-{follower}"
    assert fetches(cluster, topic, rack).keys() == {leader, follower}, "the leader says where to read, and no more"
    assert fetches(cluster, topic, "").keys() == {leader}

    settings = ("--max-messages", "1000", "--from-beginning", "--command-property", f"client.rack={rack}")
    verbose = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.consumer.internals=debug"
    words = ("--bootstrap-server", cluster.bootstrap, "--topic", topic, *settings, "--timeout-ms", "60000")
    ended = run(jvm.command_of("kafka-console-consumer", *words, flags=(verbose,)))
    assert ended.stdout.count(b"\n") == 1000
    assert f"preferred read replica for partition {topic}-0 to {follower}," in ended.stderr.decode()


def fetches(cluster: Cluster, topic: str, rack: str) -> Mapping[int, int]:
    """Returns how often librdkafka fetched from each broker to read everything."""
    by_broker: dict[int, int] = {}

    def note(text: str) -> None:
        for broker in json.loads(text)["brokers"].values():
            if broker["nodeid"] > 0 and broker["req"].get("Fetch"):
                by_broker[broker["nodeid"]] = broker["req"]["Fetch"]

    settings = {"group.id": "unused", "client.rack": rack, "statistics.interval.ms": 100, "stats_cb": note}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count, deadline = 0, time.monotonic() + SOON_S
    while count < 1000:
        assert time.monotonic() < deadline, f"{count} records, {by_broker}"
        count += sum(message.error() is None for message in consumer.consume(1000, 0.2))
    for _ in range(5):
        consumer.consume(1, 0.2)  # for its statistics
    consumer.close()
    return by_broker


def test_leaders_go_back_to_whom_partitions_prefer(cluster: Cluster, topic: str) -> None:
    assignments = [[ODRADEK, APACHE], [APACHE, ODRADEK]]
    cluster.create(topic, assignments, min__insync__replicas="1")
    for gone, left in ((ODRADEK, APACHE), (APACHE, ODRADEK)):
        cluster.members[gone].end()
        eventually(lambda left=left: cluster.leaders(topic), [left, left])  # type: ignore[misc]
        cluster.members[gone].start()
        cluster.all_in_sync(topic, assignments)
        server = ("--bootstrap-server", cluster.bootstrap)
        tool("kafka-leader-election", *server, "--election-type", "preferred", "--all-topic-partitions")
        assert cluster.leaders(topic) == [ODRADEK, APACHE]
