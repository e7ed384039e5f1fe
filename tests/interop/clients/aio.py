"""The driver of aiokafka. One event loop per call gives it the same blocking methods as every other client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.interop.clients.driver import CONSUME_TIMEOUT_S, Kind


class AioKafka(NamedTuple):
    def create(self, bootstrap: str, topic: str) -> None:
        async def work() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
            finally:
                await admin.close()

        asyncio.run(work())

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        async def work() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                acks=kind.acks if kind.acks == "all" else int(kind.acks),
                compression_type=None if kind.codec == "none" else kind.codec,
                enable_idempotence=kind.idempotent,
                linger_ms=5,
            )
            await producer.start()
            try:
                for sent in [await producer.send(topic, value, partition=0) for value in values]:
                    await sent
            finally:
                await producer.stop()

        asyncio.run(work())

    async def _read(self, consumer: AIOKafkaConsumer, topic: str, offset: int, count: int) -> list[bytes]:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        values: list[bytes] = []
        async with asyncio.timeout(CONSUME_TIMEOUT_S):
            while len(values) < count:
                polled = await consumer.getmany(timeout_ms=200, max_records=count - len(values))
                values += [record.value for record in polled.get(partition, [])]
        return values

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        async def work() -> list[bytes]:
            async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
                return await self._read(consumer, topic, offset, count)

        return asyncio.run(work())

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        async def work() -> list[bytes]:
            async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
                partition = TopicPartition(topic, 0)
                at = (await consumer.offsets_for_times({partition: timestamp_ms}))[partition]
                return await self._read(consumer, topic, at.offset, count)

        return asyncio.run(work())

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
