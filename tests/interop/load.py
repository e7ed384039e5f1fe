"""Writers and a reader that continue while the broker is killed, and record the answers."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.interop.consumed import error_of, offset_of, partition_of, value_of

PAUSE_S = 0.002
FLUSH_TIMEOUT_S = 60
AHEAD = 2000
"""Maximum number of records in flight of a writer, which waits for a slow broker."""
# What librdkafka reports while a broker is away; all else that it reports is a fault.
BROKER_IS_AWAY = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE})
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "log_level": 0}


class Writer(threading.Thread):
    """Writes 0, 1, 2, … to a partition, and records the offset of each acknowledged number."""

    def __init__(self, bootstrap: str, where: tuple[str, int], settings: Mapping[str, object]) -> None:
        super().__init__(daemon=True)
        self.where = where
        self.sent = 0
        self.acknowledged: dict[int, int] = {}
        self.failures: list[str] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **RECONNECT, **settings})
        self._stop_asked = threading.Event()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"{message.value()!r}: {error}")
        else:
            self.acknowledged[offset_of(message)] = int(value_of(message))

    def run(self) -> None:
        topic, partition = self.where
        while not self._stop_asked.is_set():
            if len(self._producer) < AHEAD:
                self._producer.produce(topic, str(self.sent), partition=partition, on_delivery=self._delivered)
                self.sent += 1
            self._producer.poll(PAUSE_S)

    def finish(self) -> None:
        """Stops writing, and waits until everything is acknowledged."""
        self._stop_asked.set()
        self.join()
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        if left:
            self.failures.append(f"{left} records of {self.where} were not acknowledged within {FLUSH_TIMEOUT_S} s")


class Seen(NamedTuple):
    """A record as a reader saw it."""

    offset: int
    number: int


class Reader(threading.Thread):
    """Reads partitions of a topic from their start all the time, and records every record and every error."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self._servers = bootstrap
        self.seen: dict[int, list[Seen]] = {partition: [] for partition in range(partitions)}
        self.faults: list[str] = []
        settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **RECONNECT})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self.seen])
        self._ends: dict[int, int] | None = None

    def run(self) -> None:
        while not self._is_done():
            for message in self._consumer.consume(1000, timeout=0.1):
                if message.error() is None:
                    self.seen[partition_of(message)].append(Seen(offset_of(message), int(value_of(message))))
                elif error_of(message).code() not in BROKER_IS_AWAY:
                    self.faults.append(str(message.error()))
        self._consumer.close()

    def _is_done(self) -> bool:
        ends = self._ends
        return ends is not None and all(
            end == 0 or (self.seen[partition] and self.seen[partition][-1].offset + 1 >= end)
            for partition, end in ends.items()
        )

    def _end(self, asker: Consumer, partition: int, deadline: float) -> int:
        """Returns the end offset of a partition, whose leader may be changing."""
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            try:
                _, end = asker.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=left_s)
                return int(end)
            except KafkaException as failed:
                if failed.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or not left_s:
                    raise
            time.sleep(PAUSE_S)  # a client is not told when another broker leads

    def finish(self, timeout_s: float = 240) -> None:
        """Reads up to the broker's current end offsets, and stops."""
        deadline = time.monotonic() + timeout_s
        asker = Consumer({"bootstrap.servers": self._servers, "group.id": "unused"})
        self._ends = {partition: self._end(asker, partition, deadline) for partition in self.seen}
        asker.close()
        self.join(max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            self.faults.append(f"did not reach the ends {self._ends} within {timeout_s} s")


PATIENT = {"message.timeout.ms": 180_000, "linger.ms": 20}
WRITERS: tuple[dict[str, object], ...] = (
    {**PATIENT, "enable.idempotence": True},
    {**PATIENT, "enable.idempotence": True, "compression.type": "zstd"},
    {**PATIENT, "enable.idempotence": False, "max.in.flight": 1},
)


class Load:
    """Writers for a topic's partitions, and a reader of all."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        settings = itertools.cycle(WRITERS)
        self.writers = [Writer(bootstrap, (topic, number), next(settings)) for number in range(partitions)]
        self.reader = Reader(bootstrap, topic, partitions)
        for thread in (*self.writers, self.reader):
            thread.start()

    def finish(self) -> None:
        for writer in self.writers:
            writer.finish()
        self.reader.finish()

    def check(self) -> int:
        """Checks that no acknowledged record is lost or at another offset, and that the reader never went back; returns
        the number of acknowledged records."""
        assert self.reader.faults == [], self.reader.faults
        for partition, writer in enumerate(self.writers):
            assert writer.failures == [], writer.failures[:9]
            check(writer, self.reader.seen[partition], exactly_once=partition % len(WRITERS) != 2)
        return sum(len(writer.acknowledged) for writer in self.writers)


def check(writer: Writer, seen: list[Seen], *, exactly_once: bool) -> None:
    """Checks that each acknowledged record is at its offset. A writer without idempotence may send a record again that
    exists already, perhaps after later records."""
    assert [one.offset for one in seen] == list(range(len(seen)))
    stored = dict(seen)
    assert {offset: stored.get(offset) for offset in writer.acknowledged} == writer.acknowledged
    numbers = [one.number for one in seen]
    assert (numbers if exactly_once else sorted(set(numbers))) == list(range(writer.sent))
