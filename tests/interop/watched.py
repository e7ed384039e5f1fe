"""A cluster under load, with all processes scraped."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.load import RECONNECT
from tests.interop.local import SOON_S, LocalCluster
from tests.interop.processes import free_ports_in_a_row
from tests.interop.prometheus import Target

PARTITIONS = 3
LAGS = "lags"
"""A group that reads and commits, and then stops reading."""
FOLLOWS = "follows"
SHARES = "shares"


class WatchedCluster(LocalCluster):
    """`odradek cluster`, with the controller's metrics on one port and those of each broker on the following ports."""

    def __init__(self, data: Path, properties: Mapping[str, str]) -> None:
        self._first = free_ports_in_a_row(4)
        super().__init__(data, {**properties, "odradek.metrics.listener": f"127.0.0.1:{self._first}"})

    def metrics(self, node_id: int) -> str:
        """Returns the metrics address of a node; the controller is node 0."""
        return f"127.0.0.1:{self._first + node_id}"

    @property
    def targets(self) -> list[Target]:
        nodes = ("controller", *(f"broker-{node_id}" for node_id in range(1, self.brokers + 1)))
        return [Target(self.metrics(node_id), f"my-cluster-{name}") for node_id, name in enumerate(nodes)]

    def create(self, topic: str, replicas: list[list[int]], **configs: str) -> None:
        """Creates a topic with these replicas of its partitions."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = NewTopic(topic, len(replicas), replica_assignment=replicas, config=settings)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new])[topic].result(SOON_S)


class Load:
    """Writes to topics, and reads them in a group and in a share group, from `start` to `stop`. Failures while brokers
    are away are left to the clients."""

    def __init__(self, bootstrap: str, topics: list[str], *, reads: bool = True) -> None:
        self._settings = {"bootstrap.servers": bootstrap, **RECONNECT}
        self._topics = topics
        self._ended = threading.Event()
        works = (self._write, self._follow, self._share) if reads else (self._write,)
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        producer = Producer({**self._settings, "acks": "all", "linger.ms": 5, "message.timeout.ms": 5_000})
        for number in itertools.count():
            if self._ended.wait(0.005):
                break
            for topic in self._topics:
                try:
                    producer.produce(topic, b"%0100d" % number, partition=number % PARTITIONS)
                except (BufferError, KafkaException):
                    producer.poll(0.1)
            producer.poll(0)
        producer.purge()
        producer.flush(1)

    def _follow(self) -> None:
        group = {"group.id": FOLLOWS, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
        consumer = Consumer({**self._settings, **group})
        consumer.subscribe(self._topics)
        while not self._ended.is_set():
            consumer.consume(500, timeout=0.1)
        consumer.close()

    def _share(self) -> None:
        consumer = ShareConsumer({**self._settings, "group.id": SHARES})
        consumer.subscribe(self._topics)
        while not self._ended.is_set():
            consumer.poll(0.1)
        consumer.close()


def fall_behind(bootstrap: str, topic: str, count: int) -> None:
    """Makes a group commit some offsets of a topic, and leave with a lag of at least this many records."""
    group = {"group.id": LAGS, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    producer = Producer({"bootstrap.servers": bootstrap, **RECONNECT})
    for number in range(count + 1_000):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, **group, **RECONNECT})
    consumer.subscribe([topic])
    assert consumer.consume(100, timeout=SOON_S)
    offsets = [TopicPartition(topic, partition, 10) for partition in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
