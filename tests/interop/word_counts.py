"""An application of Apache Kafka Streams that counts words, with a repartition topic and a changelog."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer

from bench.jars import APACHE_TOOLS, apache_streams
from tests.interop import jvm
from tests.interop.processes import LineClient
from tests.waiting import wait_until

WORDS = ("a", "b", "c", "d", "e")
APPLICATION = "application"
TOPICS = ("in", "out")
"""Topics of two partitions that the application needs."""

TASKS = ["active 0_0", "active 0_1", "active 1_0", "active 1_1"]
READY_S = 60


def start_streams(folder: Path) -> LineClient:
    """Starts a JVM for instances."""
    classpath = jvm.compiled_against("Streams.java", apache_streams(), f"streams-{APACHE_TOOLS}")
    return LineClient("streams", jvm.java(classpath, "Streams"), folder / "streams.log")


def streams_groups(bootstrap: str, *arguments: str) -> str:
    """Runs kafka-streams-groups; returns its output."""
    return jvm.tool("kafka-streams-groups", "--bootstrap-server", bootstrap, *arguments)


class WordCounts:
    """Instances that count the words in a topic, and the counts so far."""

    def __init__(self, bootstrap: str, streams: LineClient, folder: Path, within_s: float = READY_S) -> None:
        self.written: Counter[str] = Counter()
        self._bootstrap = bootstrap
        self._streams = streams
        self._folder = folder
        self._within_s = within_s

    def open(self, *names: str) -> None:
        """Starts instances."""
        for name in names:
            options = {
                "application.id": APPLICATION,
                "bootstrap.servers": self._bootstrap,
                "group.protocol": "streams",
                "processing.guarantee": "exactly_once_v2",
                "commit.interval.ms": "100",
                "state.dir": str(self._folder / name),
            }
            words = " ".join(f"{key}={value}" for key, value in options.items())
            self._streams.ask(f"open {name} {' '.join(TOPICS)} {words}")

    def close(self, name: str) -> None:
        self._streams.ask(f"close {name}")

    def tasks(self, *names: str) -> dict[str, list[str]]:
        """Returns the tasks of each instance."""
        return {name: self._streams.ask(f"tasks {name}") for name in names}

    def wait_for(self, *names: str) -> None:
        """Waits until the instances run with all four tasks, each of them with some."""

        def are_shared() -> bool:
            owned = self.tasks(*names)
            total = sorted(task for tasks in owned.values() for task in tasks)
            return total == TASKS and all(owned.values()) and all(map(self._is_running, names))

        wait_until(are_shared, lambda: self.tasks(*names), within_s=self._within_s)

    def _is_running(self, name: str) -> bool:
        return self._streams.ask(f"state {name}") == ["RUNNING"]

    def write(self, count: int) -> None:
        """Writes each word so many times."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        for number in range(count):
            for word in WORDS:
                producer.produce("in", word.encode(), str(number).encode())
                self.written[word] += 1
        assert not producer.flush(self._within_s)

    def wait_for_counts(self) -> None:
        """Waits until the last count of each word is the number of times that it was written, and checks that each
        count was written once."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["out"])
        counts: dict[str, list[int]] = {}

        def last() -> dict[str, int]:
            return {word: numbers[-1] for word, numbers in counts.items()}

        def counted() -> bool:
            message = consumer.poll(0.2)
            while message is not None and message.error() is None:
                counts.setdefault((message.key() or b"").decode(), []).append(int(message.value() or b"0"))
                message = consumer.poll(0.2)
            return last() == dict(self.written)

        try:
            wait_until(counted, lambda: (last(), dict(self.written)), within_s=self._within_s)
        finally:
            consumer.close()
        assert all(numbers == sorted({*numbers}) for numbers in counts.values()), "a count was written twice"
