"""A load for groups of old consumers: a producer writes numbers, and the consumers must print them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer

from protocol.types import TopicPartition
from tests.interop.consumed import offset_of, partition_of, value_of
from tests.interop.old_consumers import Consumed, OldConsumer
from tests.interop.zookeeper import SOON_S, until

PAUSE_S = 0.005
"""Pause between records, about two hundred a second: enough for several JVMs on a small machine."""

PATIENT = {"message.timeout.ms": 180_000, "enable.idempotence": True, "log_level": 0, "reconnect.backoff.max.ms": 200}


class Numbers(threading.Thread):
    """Writes 0, 1, 2, … to the partitions of a topic in turn, and records the place of each acknowledged number."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self._topic, self._partitions = topic, partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **PATIENT})
        self._stop_asked = threading.Event()
        self.acknowledged: set[Consumed] = set()
        self.failures: list[str] = []

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"{message.value()!r}: {error}")
        else:
            partition = TopicPartition(self._topic, partition_of(message))
            self.acknowledged.add(Consumed(partition, offset_of(message), value_of(message).decode()))

    def run(self) -> None:
        number = 0
        while not self._stop_asked.is_set():
            partition = number % self._partitions
            self._producer.produce(self._topic, str(number), partition=partition, on_delivery=self._delivered)
            self._producer.poll(PAUSE_S)
            self._stop_asked.wait(PAUSE_S)
            number += 1

    def goes_on(self, records: int = 200) -> None:
        """Waits until this many more numbers are acknowledged."""
        before = len(self.acknowledged)
        until(lambda: self.failures or len(self.acknowledged) >= before + records)
        assert not self.failures

    def finish(self) -> set[Consumed]:
        """Stops, and returns the records, all of which are acknowledged."""
        self._stop_asked.set()
        self.join()
        assert self._producer.flush(SOON_S) == 0
        assert not self.failures
        return self.acknowledged


def consumed_by(consumers: Iterable[OldConsumer]) -> Counter[Consumed]:
    """Returns how often each record was printed."""
    return Counter(record for consumer in consumers for record in consumer.consumed())


def until_consumed(records: set[Consumed], consumers: list[OldConsumer]) -> Counter[Consumed]:
    """Waits until all records have been printed; returns how often each was. A record that was never written is an
    error."""
    until(lambda: records <= consumed_by(consumers).keys(), consumers)
    counts = consumed_by(consumers)
    assert counts.keys() == records
    return counts
