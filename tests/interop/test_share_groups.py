"""Share groups as the Java client sees them: KafkaShareConsumer of Apache Kafka 4.3.1, and its tools."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.processes import LineClient

VERSION = "4.3.1"
EXPLICIT = "share.acknowledgement.mode=explicit"
LOCK_S = 1.0


class Record(NamedTuple):
    partition: int
    offset: int
    delivery: int
    value: str


@pytest.fixture
def properties() -> dict[str, str]:
    """Heartbeats and locks as short as tests want them."""
    return {
        "group.share.heartbeat.interval.ms": "200",
        "group.share.min.heartbeat.interval.ms": "200",
        "group.share.assignment.interval.ms": "0",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": "1000",
    }


class Consumers:
    """Share consumers in one JVM."""

    def __init__(self, client: LineClient) -> None:
        self.client = client
        self.bootstrap = ""

    def create(self, broker: Broker, topic: str, partitions: int = 1, **group: str) -> None:
        """A topic, and options of the group that is named like it."""
        self.bootstrap = broker.bootstrap
        jvm.tool(
            "kafka-topics", "--bootstrap-server", self.bootstrap, "--create", "--topic", topic,
            "--partitions", str(partitions),
        )  # fmt: skip
        options = {"share.auto.offset.reset": "earliest", **{k.replace("_", "."): v for k, v in group.items()}}
        jvm.tool(
            "kafka-configs", "--bootstrap-server", self.bootstrap, "--alter", "--entity-type", "groups",
            "--entity-name", topic, "--add-config", ",".join(f"{key}={value}" for key, value in options.items()),
        )  # fmt: skip

    def open(self, name: str, topic: str, *settings: str) -> None:
        self.client.ask(f"open {name} {self.bootstrap} {topic} {topic} {' '.join(settings)}".strip())

    def produce(self, topic: str, count: int, *settings: str) -> None:
        self.client.ask(f"produce {self.bootstrap} {topic} {count} {' '.join(settings)}".strip())

    def poll(self, name: str, count: int = 1, timeout_s: float = 15) -> list[Record]:
        """At least so many records, unless the time is up."""
        found: list[Record] = []
        deadline = time.monotonic() + timeout_s
        while len(found) < count and time.monotonic() < deadline:
            for line in self.client.ask(f"poll {name} 300"):
                _, partition, offset, delivery, value = line.split(" ")
                found.append(Record(int(partition), int(offset), int(delivery), value))
        return found

    def acknowledge(self, name: str, kind: str, *offsets: int) -> None:
        self.client.ask(f"acknowledge {name} {kind} 0 {' '.join(map(str, offsets))}")

    def commit(self, name: str) -> list[str]:
        return self.client.ask(f"commit {name}")

    def close(self, name: str) -> None:
        self.client.ask(f"close {name}")


@pytest.fixture(scope="module")
def share_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineClient]:
    command = jvm.java(jvm.compiled("Share.java", VERSION), "Share")
    client = LineClient("share consumers", command, tmp_path_factory.mktemp("share") / "share.log")
    yield client
    client.close()


@pytest.fixture
def consumers(share_client: LineClient) -> Consumers:
    return Consumers(share_client)


def offsets(records: list[Record]) -> list[int]:
    return sorted(record.offset for record in records)


def test_more_consumers_than_partitions_share_the_records(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, share_record_lock_duration_ms="30000")
    names = ("a", "b", "c")
    for name in names:
        consumers.open(name, topic, "max.poll.records=10")
        consumers.poll(name, timeout_s=1)
    consumers.produce(topic, 300, "batch.size=1")
    seen: dict[str, list[Record]] = {name: [] for name in names}
    deadline = time.monotonic() + 30
    while sum(map(len, seen.values())) < 300 and time.monotonic() < deadline:
        for name in names:
            seen[name] += consumers.poll(name, timeout_s=0.2)
    assert offsets([record for records in seen.values() for record in records]) == list(range(300))
    assert all(seen.values()), {name: len(records) for name, records in seen.items()}
    for name in names:
        consumers.close(name)


def test_implicit_acknowledgement_is_done_by_the_next_poll(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    assert offsets(consumers.poll("a", 10)) == list(range(10))
    consumers.poll("a", timeout_s=0.5)
    consumers.close("a")
    consumers.open("b", topic)
    assert consumers.poll("b", timeout_s=LOCK_S + 1) == []
    consumers.close("b")


def test_each_record_is_accepted_released_or_rejected(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 6)
    consumers.open("a", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 6)) == list(range(6))
    consumers.acknowledge("a", "ACCEPT", 0, 1, 4)
    consumers.acknowledge("a", "RELEASE", 2, 5)
    consumers.acknowledge("a", "REJECT", 3)
    assert consumers.commit("a") == []
    again = consumers.poll("a", 2)
    assert [(record.offset, record.delivery) for record in again] == [(2, 2), (5, 2)]
    consumers.acknowledge("a", "ACCEPT", 2, 5)
    assert consumers.commit("a") == []
    consumers.close("a")
    described = jvm.tool("kafka-share-groups", "--bootstrap-server", broker.bootstrap, "--describe", "--group", topic)
    assert re.search(rf"^{topic} +{topic} +0 +\d+ +0$", described, re.MULTILINE), described


def test_a_record_is_not_delivered_more_often_than_its_limit(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic, share_delivery_count_limit="3")
    consumers.produce(topic, 1)
    consumers.open("a", topic, EXPLICIT)
    deliveries = []
    while records := consumers.poll("a", timeout_s=3):
        deliveries += [record.delivery for record in records]
        consumers.acknowledge("a", "RELEASE", 0)
        consumers.commit("a")
    assert deliveries == [1, 2, 3]
    consumers.close("a")


def test_a_lock_that_is_renewed_holds(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 1)
    consumers.open("a", topic, EXPLICIT)
    consumers.open("b", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 1)) == [0]
    for _ in range(4):
        time.sleep(LOCK_S / 2)
        consumers.acknowledge("a", "RENEW", 0)
        assert consumers.commit("a") == []
        assert consumers.poll("b", timeout_s=0.1) == []
        assert [(record.offset, record.delivery) for record in consumers.poll("a", 1)] == [(0, 1)]
    consumers.acknowledge("a", "ACCEPT", 0)
    assert consumers.commit("a") == []
    assert consumers.poll("b", timeout_s=LOCK_S + 1) == []
    consumers.close("a")
    consumers.close("b")


def test_a_lock_that_runs_out_gives_the_records_to_another(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 5)
    consumers.open("a", topic, EXPLICIT)
    consumers.open("b", topic, EXPLICIT)
    assert offsets(consumers.poll("a", 5)) == list(range(5))
    again = consumers.poll("b", 5)
    assert [(record.offset, record.delivery) for record in again] == [(offset, 2) for offset in range(5)]
    consumers.acknowledge("a", "ACCEPT", *range(5))
    assert "InvalidRecordStateException" in "".join(consumers.commit("a"))
    consumers.acknowledge("b", "ACCEPT", *range(5))
    assert consumers.commit("b") == []
    consumers.close("a")
    consumers.close("b")


def test_what_a_consumer_had_that_crashed_is_delivered_again(
    consumers: Consumers, broker: Broker, topic: str, tmp_path: Path
) -> None:
    consumers.create(broker, topic, share_record_lock_duration_ms="30000")
    consumers.produce(topic, 5)
    crashing = Consumers(
        LineClient("crashing", jvm.java(jvm.compiled("Share.java", VERSION), "Share"), tmp_path / "crashing.log")
    )
    crashing.bootstrap = broker.bootstrap
    crashing.open("a", topic, EXPLICIT)
    assert offsets(crashing.poll("a", 5)) == list(range(5))
    crashing.client.kill9()
    consumers.open("b", topic)
    again = consumers.poll("b", 5)
    assert [(record.offset, record.delivery) for record in again] == [(offset, 2) for offset in range(5)]
    consumers.close("b")


def test_a_broker_that_is_killed_loses_no_record_and_no_acknowledgement(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 100, "batch.size=1")
    consumers.open("a", topic, EXPLICIT, "max.poll.records=10")
    accepted: list[int] = []
    for turn in range(6):
        records = consumers.poll("a", 1, timeout_s=30)
        taken = [record.offset for record in records[::2]]
        consumers.acknowledge("a", "ACCEPT", *taken)
        consumers.acknowledge("a", "RELEASE", *(record.offset for record in records[1::2]))
        if not consumers.commit("a"):
            accepted += taken
        if turn % 2:
            broker.kill9()
            broker.start()
    assert len(accepted) == len(set(accepted))
    consumers.client.ask(f"open b {broker.bootstrap} {topic} {topic}")
    deadline = time.monotonic() + 60
    rest: list[Record] = []
    while len({record.offset for record in rest} | set(accepted)) < 100 and time.monotonic() < deadline:
        rest += consumers.poll("b", timeout_s=1)
    assert {record.offset for record in rest} | set(accepted) == set(range(100))
    assert not set(accepted) & {record.offset for record in rest}
    consumers.close("a")
    consumers.close("b")


def test_records_of_aborted_transactions_are_not_delivered_to_who_reads_committed(
    consumers: Consumers, broker: Broker, topic: str
) -> None:
    consumers.create(broker, topic, share_isolation_level="read_committed")
    consumers.client.ask(f"abort {broker.bootstrap} {topic} 5")
    consumers.produce(topic, 3)
    consumers.open("a", topic)
    assert [record.value for record in consumers.poll("a", 3)] == ["value-0", "value-1", "value-2"]
    consumers.close("a")


def test_the_tool_tells_and_moves_offsets(consumers: Consumers, broker: Broker, topic: str) -> None:
    def share_groups(*arguments: str) -> str:
        return jvm.tool("kafka-share-groups", "--bootstrap-server", broker.bootstrap, *arguments)

    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    consumers.poll("a", 10)
    assert re.search(rf"^{topic} +Stable$", share_groups("--list", "--state"), re.MULTILINE)
    members = share_groups("--describe", "--group", topic, "--members")
    assert re.search(rf"^{topic} .* {topic}:0$", members, re.MULTILINE), members
    consumers.close("a")
    moved = share_groups("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute")
    assert re.search(rf"^{topic} +{topic} +0 +0 *$", moved, re.MULTILINE), moved
    described = share_groups("--describe", "--group", topic)
    assert re.search(rf"^{topic} +{topic} +0 +0 +10 *$", described, re.MULTILINE), described
    consumers.open("a", topic)
    assert offsets(consumers.poll("a", 10)) == list(range(10))
    consumers.close("a")
    share_groups("--delete-offsets", "--group", topic, "--topic", topic)
    assert "has no offset information" in share_groups("--describe", "--group", topic)
    assert "was successful" in share_groups("--delete", "--group", topic)
    assert topic not in share_groups("--list")


def test_the_console_share_consumer_reads_to_the_end(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 20)
    printed = jvm.tool(
        "kafka-console-share-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic,
        "--max-messages", "20",
    )  # fmt: skip
    assert sorted(printed.split()) == sorted(f"value-{number}" for number in range(20))


def test_kafka_dump_log_reads_the_state_topic(consumers: Consumers, broker: Broker, topic: str) -> None:
    consumers.create(broker, topic)
    consumers.produce(topic, 10)
    consumers.open("a", topic)
    consumers.poll("a", 10)
    consumers.poll("a", timeout_s=0.5)
    consumers.close("a")
    broker.stop()
    logs = [str(log) for log in broker.data.glob("__share_group_state-*/*.log") if log.stat().st_size]
    dumped = jvm.tool("kafka-dump-log", "--share-group-state-decoder", "--files", ",".join(logs))
    assert '"stateBatches":[{"firstOffset":0,"lastOffset":9,"deliveryState":2,"deliveryCount":1}]' in dumped
