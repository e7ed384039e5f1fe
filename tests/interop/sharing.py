"""Share consumers of the Java client, with commands line by line, and the common parts of share group tests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.processes import LineClient

VERSION = "4.3.1"
EXPLICIT = "share.acknowledgement.mode=explicit"
LOCK_S = 1.0

SHORT = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
}
"""Options with short heartbeats and locks, for tests."""


class Record(NamedTuple):
    partition: int
    offset: int
    delivery: int
    value: str


class Consumers:
    """Share consumers in one JVM."""

    def __init__(self, client: LineClient) -> None:
        self.client = client
        self.bootstrap = ""

    def create(self, broker: Broker, topic: str, partitions: int = 1, **group: str) -> None:
        """Creates a topic, and sets options of the group with the same name."""
        self.bootstrap = broker.bootstrap
        jvm.tool(
            "kafka-topics", "--bootstrap-server", self.bootstrap, "--create", "--topic", topic,
            "--partitions", str(partitions),
        )  # fmt: skip
        self.configure("groups", topic, share_auto_offset_reset="earliest", **group)

    def configure(self, kind: str, name: str, **options: str) -> None:
        """Sets options of a group, a topic or a broker, by attribute names."""
        texts = ",".join(f"{key.replace('_', '.')}={value}" for key, value in options.items())
        jvm.tool(
            "kafka-configs", "--bootstrap-server", self.bootstrap, "--alter", "--entity-type", kind,
            "--entity-name", name, "--add-config", texts,
        )  # fmt: skip

    def open(self, name: str, topic: str, *settings: str) -> None:
        self.client.ask(f"open {name} {self.bootstrap} {topic} {topic} {' '.join(settings)}".strip())

    def produce(self, topic: str, count: int, *settings: str) -> None:
        self.client.ask(f"produce {self.bootstrap} {topic} {count} {' '.join(settings)}".strip())

    def poll(self, name: str, count: int = 1, timeout_s: float = 15) -> list[Record]:
        """Polls until there are this many records, or the timeout is over."""
        records: list[Record] = []
        deadline = time.monotonic() + timeout_s
        while len(records) < count and time.monotonic() < deadline:
            for line in self.client.ask(f"poll {name} 300"):
                _, partition, offset, delivery, value = line.split(" ")
                records.append(Record(int(partition), int(offset), int(delivery), value))
        return records

    def acknowledge(self, name: str, kind: str, *offsets: int) -> None:
        self.client.ask(f"acknowledge {name} {kind} 0 {' '.join(map(str, offsets))}")

    def commit(self, name: str) -> list[str]:
        return self.client.ask(f"commit {name}")

    def close(self, name: str) -> None:
        self.client.ask(f"close {name}")


def start_client(log: Path) -> LineClient:
    """Starts a JVM for share consumers."""
    return LineClient("share consumers", jvm.java(jvm.compiled("Share.java", VERSION), "Share"), log)


def offsets(records: list[Record]) -> list[int]:
    return sorted(record.offset for record in records)


def deliveries(records: list[Record]) -> list[tuple[int, int]]:
    """Returns offsets with their delivery counts."""
    return sorted((record.offset, record.delivery) for record in records)


def share_groups(broker: Broker, *arguments: str) -> str:
    """Runs kafka-share-groups; returns its output."""
    return jvm.tool("kafka-share-groups", "--bootstrap-server", broker.bootstrap, *arguments)
