"""Transactional producers and consumers of several libraries, with two methods.

`transact` writes transactions one after the other. Each is committed or aborted after its records are on the broker,
with the offsets of a group if one is named. `read` reads a partition from its start to its end at the isolation level.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tests.interop import jvm
from tests.interop.clients.driver import CONSUME_TIMEOUT_S
from tests.interop.consumed import value_of
from tests.interop.processes import run

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Transaction(NamedTuple):
    """The values written to partition 0, and the end of their transaction."""

    values: Sequence[str]
    committed: bool
    group: str | None = None
    offset: int = 0
    """The offset in the same partition that the group commits."""


class Transactional(Protocol):
    def transact(self, bootstrap: str, topic: str, name: str, transactions: Sequence[Transaction]) -> None: ...

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[str]: ...


class ConfluentTransactions:
    def transact(self, bootstrap: str, topic: str, name: str, transactions: Sequence[Transaction]) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition

        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(CONSUME_TIMEOUT_S)
        for transaction in transactions:
            producer.begin_transaction()
            for value in transaction.values:
                producer.produce(topic, value, partition=0)
            assert not producer.flush(CONSUME_TIMEOUT_S)
            if transaction.group is not None:
                consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": transaction.group})
                producer.send_offsets_to_transaction(
                    [TopicPartition(topic, 0, transaction.offset)],
                    consumer.consumer_group_metadata(),
                    CONSUME_TIMEOUT_S,
                )
                consumer.close()
            if transaction.committed:
                producer.commit_transaction(CONSUME_TIMEOUT_S)
            else:
                producer.abort_transaction(CONSUME_TIMEOUT_S)

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[str]:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"group.id": "unused", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[str] = []
        try:
            while (message := consumer.poll(CONSUME_TIMEOUT_S)) is not None and message.error() is None:
                values.append(value_of(message).decode())
        finally:
            consumer.close()
        return values


class AioKafkaTransactions:
    def transact(self, bootstrap: str, topic: str, name: str, transactions: Sequence[Transaction]) -> None:
        from aiokafka import AIOKafkaProducer, TopicPartition

        async def work() -> None:
            async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
                for transaction in transactions:
                    await producer.begin_transaction()
                    for sent in [
                        await producer.send(topic, value.encode(), partition=0) for value in transaction.values
                    ]:
                        await sent
                    if transaction.group is not None:
                        offsets = {TopicPartition(topic, 0): transaction.offset}
                        await producer.send_offsets_to_transaction(offsets, transaction.group)
                    await (producer.commit_transaction() if transaction.committed else producer.abort_transaction())

        asyncio.run(work())

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[str]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def work() -> list[str]:
            settings = {"isolation_level": isolation, "enable_auto_commit": False}
            async with AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings) as consumer:
                partition = TopicPartition(topic, 0)
                consumer.assign([partition])
                end = (await consumer.end_offsets([partition]))[partition]
                consumer.seek(partition, 0)
                values: list[str] = []
                async with asyncio.timeout(CONSUME_TIMEOUT_S):
                    while await consumer.position(partition) < end:
                        polled = await consumer.getmany(timeout_ms=100)
                        values += [record.value.decode() for record in polled.get(partition, [])]
                return values

        return asyncio.run(work())


class KafkaPythonTransactions:
    def transact(self, bootstrap: str, topic: str, name: str, transactions: Sequence[Transaction]) -> None:
        from kafka import KafkaProducer, TopicPartition
        from kafka.structs import OffsetAndMetadata

        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        producer.init_transactions()
        try:
            for transaction in transactions:
                producer.begin_transaction()
                for sent in [producer.send(topic, value.encode(), partition=0) for value in transaction.values]:
                    sent.get(timeout=CONSUME_TIMEOUT_S)
                if transaction.group is not None:
                    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(transaction.offset, "", -1)}
                    producer.send_offsets_to_transaction(offsets, transaction.group)
                if transaction.committed:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[str]:
        from kafka import KafkaConsumer, TopicPartition

        partition = TopicPartition(topic, 0)
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False)
        try:
            consumer.assign([partition])
            end = consumer.end_offsets([partition])[partition]
            consumer.seek(partition, 0)
            values: list[str] = []
            deadline = time.monotonic() + CONSUME_TIMEOUT_S
            while consumer.position(partition) < end and time.monotonic() < deadline:
                values += [record.value.decode() for record in consumer.poll(100).get(partition, [])]
            return values
        finally:
            consumer.close()


class JavaTransactions(NamedTuple):
    """The Java client of a version from 0.11 on, with a JVM for each call."""

    version: str

    def transact(self, bootstrap: str, topic: str, name: str, transactions: Sequence[Transaction]) -> None:
        lines = [
            f"{'commit' if one.committed else 'abort'} {one.group or '-'} {one.offset} {' '.join(one.values)}"
            for one in transactions
        ]
        self._run("transact", bootstrap, topic, name, stdin="\n".join(lines))

    def read(self, bootstrap: str, topic: str, isolation: str) -> list[str]:
        return self._run("read", bootstrap, topic, isolation).split()

    def _run(self, *arguments: str, stdin: str = "") -> str:
        command = jvm.java(jvm.compiled("Transactions.java", self.version), "Transactions", *arguments)
        return run(command, stdin=stdin.encode(), timeout_s=120).stdout.decode()


TRANSACTIONAL: dict[str, Transactional] = {
    "confluent": ConfluentTransactions(),
    "aiokafka": AioKafkaTransactions(),
    "kafka-python": KafkaPythonTransactions(),
    **{f"java-{version}": JavaTransactions(version) for version in ("0.11.0.3", "1.1.1", "2.8.2", "3.9.2", "4.3.1")},
}
