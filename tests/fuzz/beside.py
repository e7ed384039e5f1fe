"""A well-behaved client beside the fuzzing, in a separate process: `python -m tests.fuzz.beside BOOTSTRAP`.

It reads commands from standard input, and ends each answer with `done`: `start`; `lap` prints the percentiles of
Produce times since the last lap; `finish` prints the lost records, of which there must be none.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, Message, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

PAUSE_S: Final = 0.01
PATIENCE_S: Final = 60
TRANSACTION_RECORDS: Final = 5
REOPEN_S: Final = 7
PARTITIONS: Final = 2


class Beside:
    """Produces, consumes with commits, runs transactions, and consumes in a share group, under names that fuzzing can't
    guess."""

    def __init__(self, bootstrap: str) -> None:
        self.settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "topic.metadata.refresh.interval.ms": 10_000,
        }
        name = uuid.uuid4().hex
        self.plain, self.transactional, self.shared = (
            f"{kind}-{name}" for kind in ("plain", "transactional", "shared")
        )
        self.acked: set[bytes] = set()
        self.shared_acked: set[bytes] = set()
        self.committed: list[bytes] = []
        self.aborted: set[bytes] = set()
        self.consumed: list[bytes] = []
        self.shared_consumed: set[bytes] = set()
        self.latencies: list[float] = []
        self.problems: list[str] = []
        self.stopping = threading.Event()
        self.ending = threading.Event()
        self.threads = [
            threading.Thread(target=self.guard, args=(work,), daemon=True)
            for work in (self.produce, self.consume, self.transact, self.share)
        ]

    def start(self) -> None:
        admin = AdminClient(self.settings)
        names = (self.plain, self.transactional, self.shared)
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
            made.result(PATIENCE_S)
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, self.shared, incremental_configs=[entry])
        for altered in admin.incremental_alter_configs([resource]).values():
            altered.result(PATIENCE_S)
        for thread in self.threads:
            thread.start()

    def guard(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self.problems.append(f"{work.__name__}: {error!r}")

    def produce(self) -> None:
        producer = Producer({**self.settings, "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 60_000})
        number = 0
        while not self.stopping.is_set():
            value, began = b"%d" % number, time.perf_counter()
            producer.produce(self.plain, value, on_delivery=partial(self.delivered, began))
            if number % 3 == 0:
                producer.produce(self.shared, value, on_delivery=self.delivered_shared)
            number += 1
            producer.poll(PAUSE_S)
            self.stopping.wait(max(0.0, PAUSE_S - (time.perf_counter() - began)))
        if left := producer.flush(PATIENCE_S):
            self.problems.append(f"{left} records were not delivered")

    def delivered(self, began: float, error: Any, message: Message) -> None:
        if error is not None:
            self.problems.append(f"produce: {error}")
            return
        self.latencies.append(time.perf_counter() - began)
        self.acked.add(message.value() or b"")

    def delivered_shared(self, error: Any, message: Message) -> None:
        if error is not None:
            self.problems.append(f"produce to the share group: {error}")
        else:
            self.shared_acked.add(message.value() or b"")

    def consume(self) -> None:
        """Consumes, leaves the group now and then, and continues at its committed offsets."""
        settings = {
            **self.settings,
            "group.id": self.plain,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        while not self.ending.is_set():
            consumer = Consumer(settings)
            consumer.subscribe([self.plain])
            until = time.monotonic() + REOPEN_S
            while time.monotonic() < until and not self.ending.is_set():
                messages = [message for message in consumer.consume(100, 0.1) if message.error() is None]
                if messages:
                    consumer.commit(asynchronous=False)
                    self.consumed += [message.value() or b"" for message in messages]
            consumer.close()

    def transact(self) -> None:
        producer = Producer({**self.settings, "transactional.id": self.transactional})
        producer.init_transactions(PATIENCE_S)
        number = 0
        while not self.stopping.is_set():
            values = [b"%d/%d" % (number, index) for index in range(TRANSACTION_RECORDS)]
            producer.begin_transaction()
            for value in values:
                producer.produce(self.transactional, value)
            if number % 4 == 3:
                producer.abort_transaction(PATIENCE_S)
                self.aborted.update(values)
            else:
                producer.commit_transaction(PATIENCE_S)
                self.committed += values
            number += 1
            self.stopping.wait(0.1)

    def share(self) -> None:
        consumer = ShareConsumer({**self.settings, "group.id": self.shared})
        consumer.subscribe([self.shared])
        while not self.ending.is_set():
            for message in consumer.poll(0.1):
                if message.error() is None:
                    self.shared_consumed.add(message.value() or b"")
        consumer.close()

    def lap(self) -> str:
        taken, self.latencies = sorted(self.latencies), []
        if not taken:
            return "0 0 0"
        return f"{len(taken)} {taken[len(taken) // 2] * 1000:.2f} {taken[len(taken) * 99 // 100] * 1000:.2f}"

    def finish(self) -> list[str]:
        """Stops producing, waits for the remaining records, and returns those that are missing."""
        self.stopping.set()
        for thread in (self.threads[0], self.threads[2]):
            thread.join(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and not (
            self.acked <= set(self.consumed) and self.shared_acked <= self.shared_consumed
        ):
            time.sleep(0.05)  # the consumers tell nobody when they are done
        self.ending.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
        return [*self.problems, *self.losses()]

    def losses(self) -> list[str]:
        problems = []
        for what, lost in (
            ("acknowledged records were not consumed", self.acked - set(self.consumed)),
            ("shared records were not consumed", self.shared_acked - self.shared_consumed),
        ):
            if lost:
                problems.append(f"{len(lost)} {what}: {sorted(lost)[:5]}")
        if len(self.consumed) != len(set(self.consumed)):
            problems.append(f"{len(self.consumed) - len(set(self.consumed))} records were consumed twice")
        return [*problems, *self.damages()]

    def damages(self) -> list[str]:
        """Returns the damages of the topics, read from the start, also after the broker's restart."""
        problems = []
        plain, transacted = self.read(self.plain), self.read(self.transactional)
        if lost := self.acked - set(plain):
            problems.append(f"{len(lost)} acknowledged records are gone: {sorted(lost)[:5]}")
        if len(plain) != len(set(plain)):
            problems.append(f"{len(plain) - len(set(plain))} records are there twice")
        if lost := set(self.committed) - set(transacted):
            problems.append(f"{len(lost)} committed records are gone: {sorted(lost)[:5]}")
        if wrong := self.aborted & set(transacted):
            problems.append(f"{len(wrong)} aborted records can be read")
        return problems

    def read(self, topic: str) -> list[bytes]:
        """Returns all records, read-committed."""
        settings = {**self.settings, "group.id": uuid.uuid4().hex, "isolation.level": "read_committed"}
        consumer = Consumer(settings)
        values: list[bytes] = []
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, PATIENCE_S)
            consumer.assign([place])
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and position(consumer, place) < end:
                messages = consumer.consume(1000, 0.2)
                values += [message.value() or b"" for message in messages if message.error() is None]
        consumer.close()
        return values


def position(consumer: Consumer, place: TopicPartition) -> int:
    return int(consumer.position([place])[0].offset)


def main() -> None:
    beside = Beside(sys.argv[1])
    for line in sys.stdin:
        if line == "start\n":
            beside.start()
        elif line == "lap\n":
            print(beside.lap())
        elif line == "finish\n":
            for problem in beside.finish():
                print(problem)
        elif line == "kept\n":
            for problem in beside.damages():
                print(problem)
        print("done", flush=True)


if __name__ == "__main__":
    main()
