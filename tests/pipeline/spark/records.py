"""Writes records into topics, and reads the records of a store."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Row, SparkSession

from pipeline.activity import Activity
from pipeline.audit import AuditConfig, audit
from pipeline.cluster import Cluster
from pipeline.generate import GenerateConfig, Generated, generate
from pipeline.producing import Outgoing, Writer
from pipeline.source import read_files
from pipeline.store import Store
from tests.interop.brokers import Broker

START_MS = 1_790_000_000_000
"""A fixed time in September 2026, so late that no retention deletes the records."""


def activity(broker: Broker, topic: str, records: int = 2_000, seed: int = 1, partitions: int = 3) -> Generated:
    return generate(GenerateConfig(broker.bootstrap, topic, Activity(records, seed, START_MS, 0.5), partitions))


def create(broker: Broker, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Creates a topic that keeps the records of the tests, whatever their timestamps are."""
    Cluster(broker.bootstrap).create(topic, partitions, {"retention.ms": "-1", **(configs or {})})


def produce(broker: Broker, topic: str, values: list[bytes | None], partition: int = 0, at_ms: int = START_MS) -> None:
    with Writer(broker.bootstrap, topic) as writer:
        for number, value in enumerate(values):
            key = f"k{number}".encode()
            writer.write(Outgoing(key, value, [("n", str(number).encode())], at_ms + number, partition))


def rows(spark: SparkSession, store: str, *, quarantined: bool | None = False) -> list[Row]:
    """Returns the rows of a store, by partition and offset."""
    files = Store(store).reading().files_of(quarantined=quarantined)
    return read_files(spark, Store(store).root, files).orderBy("topic", "partition", "offset").collect()


def is_complete(spark: SparkSession, broker: Broker, topic: str, store: str) -> bool:
    return audit(spark, AuditConfig(broker.bootstrap, (topic,), store=store)).clean
