"""Tests applications of Apache Kafka Streams whose groups the broker coordinates (KIP-1071)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from bench.jars import resolve
from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.commanding import call
from tests.interop.processes import LineClient
from tests.waiting import wait_until

CLIENT = Confluent()
VERSION = "4.3.1"
WORDS = ("a", "b", "c", "d", "e")
APPLICATION = "application"
READY_S = 60


@pytest.fixture
def properties() -> dict[str, str]:
    return {
        "group.streams.initial.rebalance.delay.ms": "500",
        "group.streams.min.heartbeat.interval.ms": "500",
        "group.streams.heartbeat.interval.ms": "500",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[LineClient]:
    jars = resolve(f"streams-{VERSION}", jvm.HERE / "streams.xml", f"-Dkafka.version={VERSION}")
    classpath = jvm.compiled_against("Streams.java", jars, f"streams-{VERSION}")
    client = LineClient("streams", jvm.java(classpath, "Streams"), tmp_path / "streams.log")
    yield client
    client.close()


class Application:
    """Instances that count the words in a topic, and the counts so far."""

    def __init__(self, broker: Broker, streams: LineClient, folder: Path, **settings: str) -> None:
        self.broker = broker
        self._streams = streams
        self._folder = folder
        self._settings = settings
        self.written: Counter[str] = Counter()
        for topic in ("in", "out"):
            CLIENT.create(broker.bootstrap, topic, partitions=2)

    def open(self, name: str, **settings: str) -> None:
        options = {
            "application.id": APPLICATION,
            "bootstrap.servers": self.broker.bootstrap,
            "group.protocol": "streams",
            "processing.guarantee": "exactly_once_v2",
            "commit.interval.ms": "100",
            "state.dir": str(self._folder / name),
            **self._settings,
            **settings,
        }
        words = " ".join(f"{key.replace('_', '.')}={value}" for key, value in options.items())
        self._streams.ask(f"open {name} in out {words}")

    def is_running(self, name: str) -> bool:
        return self._streams.ask(f"state {name}") == ["RUNNING"]

    def tasks(self, name: str) -> list[str]:
        return self._streams.ask(f"tasks {name}")

    def close(self, name: str) -> None:
        self._streams.ask(f"close {name}")

    def write(self, count: int) -> None:
        """Writes each word so many times."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for number in range(count):
            for word in WORDS:
                producer.produce("in", word.encode(), str(number).encode())
                self.written[word] += 1
        assert not producer.flush(30)

    def wait_for_counts(self) -> None:
        """Waits until the last count of each word is the number of times that it was written."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["out"])
        counts: dict[str, int] = {}

        def counted() -> bool:
            message = consumer.poll(0.2)
            while message is not None and message.error() is None:
                counts[(message.key() or b"").decode()] = int(message.value() or b"0")
                message = consumer.poll(0.2)
            return counts == dict(self.written)

        try:
            wait_until(counted, lambda: (counts, dict(self.written)), within_s=READY_S)
        finally:
            consumer.close()


@pytest.fixture
def application(broker: Broker, streams: LineClient, tmp_path: Path) -> Application:
    return Application(broker, streams, tmp_path / "state")


def tool(broker: Broker, *arguments: str) -> str:
    return jvm.tool("kafka-streams-groups", "--bootstrap-server", broker.bootstrap, *arguments)


def wait_for_instances(application: Application, *names: str) -> None:
    """Waits until the instances run with all four tasks, each of them with some."""

    def tasks() -> dict[str, list[str]]:
        return {name: application.tasks(name) for name in names}

    def are_shared() -> bool:
        owned = tasks()
        total = sorted(task for each in owned.values() for task in each)
        return (
            total == ["active 0_0", "active 0_1", "active 1_0", "active 1_1"]
            and all(owned.values())
            and all(map(application.is_running, names))
        )

    wait_until(are_shared, tasks, within_s=READY_S)


def test_counts_are_exact_over_rebalances_and_a_restart_of_the_broker(application: Application) -> None:
    application.open("one")
    application.write(50)
    wait_for_instances(application, "one")
    application.wait_for_counts()
    application.open("two")
    wait_for_instances(application, "one", "two")
    application.write(50)
    application.wait_for_counts()
    application.broker.restart()
    application.write(50)
    application.wait_for_counts()
    wait_for_instances(application, "one", "two")
    application.close("one")
    wait_for_instances(application, "two")
    application.write(50)
    application.wait_for_counts()


def test_the_tools_show_and_delete_the_group(application: Application, capsys: pytest.CaptureFixture[str]) -> None:
    broker = application.broker
    application.open("one")
    application.write(10)
    wait_for_instances(application, "one")
    application.wait_for_counts()
    assert APPLICATION in tool(broker, "--list").split()
    state = tool(broker, "--describe", "--group", APPLICATION, "--state", "--verbose")
    assert "Stable" in state
    assert "ACTIVE" in tool(broker, "--describe", "--group", APPLICATION, "--members", "--verbose")
    offsets = tool(broker, "--describe", "--group", APPLICATION)
    assert f"{APPLICATION}-by-value-repartition" in offsets
    (row,) = [row for row in call(capsys, broker.bootstrap, ("group", "list")).rows if row["group"] == APPLICATION]
    assert (row["type"], row["state"], row["protocol"]) == ("streams", "Stable", "streams")
    (shown,) = call(capsys, broker.bootstrap, ("group", "describe", APPLICATION)).rows
    assert (shown["type"], shown["members"], shown["lag"]) == ("streams", 1, 0)
    partitions = shown["partitions"]
    assert isinstance(partitions, list)
    assert {(place["topic"], place["partition"]) for place in partitions} == {
        (topic, partition) for topic in ("in", f"{APPLICATION}-by-value-repartition") for partition in (0, 1)
    }
    application.close("one")
    wait_until(lambda: "Empty" in tool(broker, "--list", "--state"), within_s=READY_S)
    assert "successful" in tool(broker, "--delete", "--group", APPLICATION)
    assert APPLICATION not in tool(broker, "--list").split()
