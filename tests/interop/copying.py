"""Consume, transform, produce: copiers that are killed and restarted, and checks of their output."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop import jvm
from tests.interop.consumed import partition_of, value_of

PARTITIONS = 3
TIMEOUT_S = 120
SETTLE_S = 2
"""Time to wait for records that should not exist."""


class Copier:
    """A JVM that copies a topic to another, exactly once."""

    def __init__(self, bootstrap: str, name: str, group: str, version: str, log: Path, *settings: str) -> None:
        self.log = log
        self._command = jvm.java(
            jvm.compiled("Copier.java", version), "Copier", bootstrap, name, group, "input", "output", *settings
        )
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill9(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        self.kill9()
        self.start()


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new_topics = [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in ("input", "output")]
    for created in admin.create_topics(new_topics).values():
        created.result(TIMEOUT_S)


def fill(bootstrap: str, count: int, first: int = 0) -> None:
    """Writes numbers from `first` on, round robin over the partitions."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce("input", str(number), partition=number % PARTITIONS)
        producer.poll(0)
    assert not producer.flush(TIMEOUT_S)


def read(bootstrap: str, isolation: str, count: int, timeout_s: float = TIMEOUT_S) -> dict[int, list[int]]:
    """Returns the records in the output, by partition: waits for `count` records, and then for a while, in case more
    arrive."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": isolation})
    consumer.assign([TopicPartition("output", index, 0) for index in range(PARTITIONS)])
    values: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    seen = 0
    deadline = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline:
            messages = [message for message in consumer.consume(1000, timeout=0.5) if message.error() is None]
            for message in messages:
                values[partition_of(message)].append(int(value_of(message)))
            seen += len(messages)
            if seen >= count:
                deadline = min(deadline, time.monotonic() + SETTLE_S)
    finally:
        consumer.close()
    return values


def repeated(values: dict[int, list[int]]) -> list[int]:
    counts = Counter(number for numbers in values.values() for number in numbers)
    return [number for number, times in counts.items() if times > 1]
