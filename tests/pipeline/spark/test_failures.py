"""A job that cannot go on says so with topic, partition and offsets, and has committed nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.errors import CorruptBatch, LostRange, PipelineError, TopicChanged, Unreachable
from pipeline.load import LoadConfig, load
from pipeline.ranges import Accepted, Bounds
from pipeline.store import Store
from pipeline.topics import Partition
from tests.interop.brokers import Broker
from tests.interop.processes import free_port
from tests.pipeline.spark.records import create, is_complete, produce, rows
from tests.pipeline.spark.test_mirror import recreate


def loaded_once(spark: SparkSession, broker: Broker, topic: str, store: str, records: int = 10) -> LoadConfig:
    create(broker, topic, 1)
    produce(broker, topic, [b"x"] * records)
    config = LoadConfig(broker.bootstrap, store, (topic,))
    load(spark, config)
    return config


def manifests(store: str) -> int:
    return len(list(Path(store, "_manifests").glob("*.json")))


def test_a_lost_range(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    config = loaded_once(spark, kafka, topic, store)
    produce(kafka, topic, [b"y"] * 10)
    gone = TopicPartition(topic, 0, 15)
    admin = Cluster(kafka.bootstrap).admin
    admin.delete_records([gone])[gone].result(30)

    with pytest.raises(LostRange, match=rf"{topic}-0: offsets 10 to 14 are lost, the partition begins with 15 now"):
        load(spark, config)
    assert manifests(store) == 1
    accepting = LoadConfig(kafka.bootstrap, store, (topic,), accepted=Accepted(lost=True))
    assert load(spark, accepting).records == 5
    assert is_complete(spark, kafka, topic, store)


def test_a_topic_that_gained_partitions(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    config = loaded_once(spark, kafka, topic, store)
    Cluster(kafka.bootstrap).grow(topic, 2)
    produce(kafka, topic, [b"y"] * 3, partition=1)

    with pytest.raises(
        TopicChanged, match=rf"{topic} has 2 partitions, 1 when loaded; new: {topic}-1 \(offsets 0 to 2\)"
    ):
        load(spark, config)
    assert manifests(store) == 1
    accepting = LoadConfig(kafka.bootstrap, store, (topic,), accepted=Accepted(new_partitions=True))
    assert load(spark, accepting).records == 3
    assert is_complete(spark, kafka, topic, store)


def test_a_topic_that_was_deleted_and_created_again(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    config = loaded_once(spark, kafka, topic, store)
    recreate(kafka, topic)

    with pytest.raises(TopicChanged, match=rf"Loaded: {topic}-0 up to 9. The topic has: {topic}-0 0 to 4"):
        load(spark, config)
    assert manifests(store) == 1
    accepting = LoadConfig(kafka.bootstrap, store, (topic,), accepted=Accepted(recreated=True))
    assert load(spark, accepting).records == 5
    assert [row["value"] for row in rows(spark, store)] == [b"new"] * 5
    assert spark.read.parquet(store).count() == 5


def test_a_corrupt_batch(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    config = loaded_once(spark, kafka, topic, store)
    produce(kafka, topic, [b"a record that is to be corrupted"])
    produce(kafka, topic, [b"z"])
    (log,) = kafka.data.glob(f"{topic}-0/*.log")
    damaged = bytearray(log.read_bytes())
    damaged[damaged.index(b"to be corrupted")] ^= 1
    with log.open("r+b") as file:
        file.write(damaged)

    with pytest.raises(CorruptBatch, match=rf"{topic}-0.*corrupt.*Asked for: {topic}-0 offsets 10 to 11"):
        load(spark, config)
    assert manifests(store) == 1
    assert len(rows(spark, store)) == 10


def test_no_broker(spark: SparkSession, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.cluster.REQUEST_TIMEOUT_S", 2)
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match=f"no broker answers at {nobody}"):
        load(spark, LoadConfig(nobody, store, ("clicks",)))


def test_offsets_that_are_not_there_yet(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    loaded_once(spark, odradek, topic, store)
    beyond = Bounds(offsets={Partition(topic, 0): 99})
    with pytest.raises(
        PipelineError, match=rf"{topic}-0: offsets up to 98 are asked for, but the partition ends with 9"
    ):
        load(spark, LoadConfig(odradek.bootstrap, store, (topic,), starting=Bounds(named=-2), ending=beyond))


def test_a_topic_that_is_not_there(spark: SparkSession, odradek: Broker, store: str) -> None:
    with pytest.raises(PipelineError, match="has no topic nowhere"):
        load(spark, LoadConfig(odradek.bootstrap, store, ("nowhere",)))


def test_two_runs_at_once(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    config = loaded_once(spark, odradek, topic, store)
    with Store(store).writing(), pytest.raises(PipelineError, match="another run is writing to it"):
        load(spark, config)
