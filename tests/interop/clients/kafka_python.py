"""The driver of kafka-python, with its current protocol, and pinned to the protocol of old brokers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.interop.clients.driver import CONSUME_TIMEOUT_S, Kind


class KafkaPython(NamedTuple):
    """Uses kafka-python. `api_version` pins the protocol; with None the client asks the broker."""

    api_version: tuple[int, ...] | None = None

    def _settings(self, bootstrap: str) -> dict[str, Any]:
        pinned = {} if self.api_version is None else {"api_version": self.api_version}
        return {"bootstrap_servers": bootstrap, **pinned}

    def create(self, bootstrap: str, topic: str) -> None:
        """Creates the topic by CreateTopics if the pinned version has it (0.10.1), otherwise by requesting its
        metadata."""
        if self.api_version is not None and self.api_version < (0, 10, 1):
            producer = KafkaProducer(**self._settings(bootstrap))
            assert producer.partitions_for(topic) == {0}
            producer.close()
            return
        admin = KafkaAdminClient(**self._settings(bootstrap))
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
        admin.close()

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        producer = KafkaProducer(
            **self._settings(bootstrap),
            acks=kind.acks if kind.acks == "all" else int(kind.acks),
            compression_type=None if kind.codec == "none" else kind.codec,
            enable_idempotence=kind.idempotent,
            linger_ms=5,
        )
        try:
            sent = [producer.send(topic, value, partition=0) for value in values]
            for one in sent:
                one.get(timeout=CONSUME_TIMEOUT_S)
        finally:
            producer.close()

    def _consumer(self, bootstrap: str) -> KafkaConsumer:
        return KafkaConsumer(**self._settings(bootstrap), enable_auto_commit=False)

    def _read(self, consumer: KafkaConsumer, topic: str, offset: int, count: int) -> list[bytes]:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        values: list[bytes] = []
        deadline = time.monotonic() + CONSUME_TIMEOUT_S
        while len(values) < count and time.monotonic() < deadline:
            polled = consumer.poll(timeout_ms=200, max_records=count - len(values))
            values += [record.value for record in polled.get(partition, [])]
        return values

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        consumer = self._consumer(bootstrap)
        try:
            return self._read(consumer, topic, offset, count)
        finally:
            consumer.close()

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        partition = TopicPartition(topic, 0)
        consumer = self._consumer(bootstrap)
        try:
            at = consumer.offsets_for_times({partition: timestamp_ms})[partition]
            return self._read(consumer, topic, at.offset, count)
        finally:
            consumer.close()

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
