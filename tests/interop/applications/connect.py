"""Workers of Kafka Connect, their connectors, and a reader of the topics that they write."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.interop.applications.table import JAVA, QUIET, jars
from tests.interop.processes import Server

TIMEOUT_S = 240
PAUSE_S = 0.5
WORKER = {
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.storage.topic": "connect-offsets",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "4",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "exactly.once.source.support": "enabled",
    "offset.flush.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "1000",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "producer.transaction.timeout.ms": "10000",
}


class Jvm(Server):
    """A worker of Connect, or MirrorMaker 2, with a file of settings."""

    def __init__(self, name: str, folder: Path, main: str, settings: Mapping[str, str], pom: str = "apache") -> None:
        """`pom` is the name of the file that lists the jars."""
        super().__init__(name, folder / f"{name}.log")
        file = folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._command = [*JAVA, QUIET, "-cp", f"{jars(pom)}/*", main, str(file)]

    def start(self) -> None:
        self.launch(self._command, "", TIMEOUT_S)


def until(is_reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_reached():
        assert time.monotonic() < deadline, f"{what} not within {TIMEOUT_S} s"
        time.sleep(PAUSE_S)


class Reader:
    """Reads the values of a topic with one partition, from its start."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: list[str] = []
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def has(self, count: int) -> bool:
        """Reads the available records. Returns True if `count` different values were read."""
        for message in self._consumer.consume(10_000, 1):
            value = message.value()
            if not message.error() and isinstance(value, bytes):
                self.values.append(value.decode())
        return len(set(self.values)) >= count


def put(port: int, name: str, settings: Mapping[str, str]) -> bool:
    """Creates a connector. Returns False if the workers aren't ready for that."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/{name}/config", json.dumps(settings).encode(), method="PUT"
    )
    request.add_header("Content-Type", "application/json")
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False
    return True
