"""The driver of confluent-kafka, which has the newest librdkafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.clients.driver import CONSUME_TIMEOUT_S, Kind
from tests.interop.consumed import offset_of, value_of


class Confluent(NamedTuple):
    def create(self, bootstrap: str, topic: str, partitions: int = 1) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new_topic = NewTopic(topic, num_partitions=partitions, replication_factor=1)
        admin.create_topics([new_topic])[topic].result(CONSUME_TIMEOUT_S)

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        self.produce_at(bootstrap, topic, [(0, value) for value in values], kind)

    def produce_at(self, bootstrap: str, topic: str, records: Sequence[tuple[int, bytes]], kind: Kind) -> None:
        """Writes (timestamp in ms, value) pairs; 0 is now."""
        failures: list[KafkaError] = []
        settings = {"compression.type": kind.codec, "acks": kind.acks, "enable.idempotence": kind.idempotent}
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        for timestamp_ms, value in records:
            producer.produce(topic, value, partition=0, timestamp=timestamp_ms, on_delivery=delivered)
        left = producer.flush(CONSUME_TIMEOUT_S)
        assert not left, f"{left} records were not acknowledged"
        assert not failures, failures

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        return [value for _, value in self.records(bootstrap, topic, offset, count)]

    def records(
        self, bootstrap: str, topic: str, offset: int, count: int, timeout_s: float = CONSUME_TIMEOUT_S
    ) -> list[tuple[int, bytes]]:
        """Returns (offset, value) of `count` records; fewer at the timeout."""
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, offset)])
        received: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + timeout_s
        try:
            while len(received) < count and time.monotonic() < deadline:
                for message in consumer.consume(count - len(received), timeout=0.2):
                    if message.error():
                        raise KafkaException(message.error())
                    received.append((offset_of(message), value_of(message)))
        finally:
            consumer.close()
        return received

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
        try:
            (first,) = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp_ms)], timeout=CONSUME_TIMEOUT_S)
        finally:
            consumer.close()
        return self.consume(bootstrap, topic, first.offset, count)

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
