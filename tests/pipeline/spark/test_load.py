"""Tests `load`: each record is loaded once, even if ranges are loaded several times."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.load import LoadConfig, load
from pipeline.ranges import EARLIEST, RangeBounds
from pipeline.store import Store
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import START_MS, activity, create, is_complete, produce, rows


def test_everything_is_loaded_once_and_the_next_run_continues(
    spark: SparkSession, kafka: Broker, topic: str, store: str
) -> None:
    create(kafka, topic, 3)
    activity(kafka, topic, 3_000)
    config = LoadConfig(kafka.bootstrap, store, (topic,))

    assert load(spark, config).records == 3_000
    assert load(spark, config).ranges == []
    activity(kafka, topic, 500, seed=2)
    assert load(spark, config).records == 500

    assert spark.read.parquet(store).count() == 3_500
    assert is_complete(spark, kafka, topic, store)


def test_a_record_keeps_all_that_it_is(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    create(kafka, topic, 1)
    produce(kafka, topic, [b"a", None, b""])
    load(spark, LoadConfig(kafka.bootstrap, store, (topic,)))

    loaded = rows(spark, store)
    assert [row["value"] for row in loaded] == [b"a", None, b""]
    assert [row["key"] for row in loaded] == [b"k0", b"k1", b"k2"]
    assert [[(h["key"], h["value"]) for h in row["headers"]] for row in loaded] == [
        [("n", b"0")],
        [("n", b"1")],
        [("n", b"2")],
    ]
    assert [(row["offset"], row["timestamp"].timestamp() * 1000) for row in loaded] == [
        (0, START_MS),
        (1, START_MS + 1),
        (2, START_MS + 2),
    ]
    assert (loaded[0]["topic"], loaded[0]["date"], loaded[0]["hour"]) == (topic, "2026-09-21", "14")


def test_a_range_that_is_loaded_again_replaces_what_was_loaded_of_it(
    spark: SparkSession, kafka: Broker, topic: str, store: str
) -> None:
    create(kafka, topic, 3)
    activity(kafka, topic, 1_000)
    config = LoadConfig(kafka.bootstrap, store, (topic,))
    load(spark, config)
    again = load(spark, LoadConfig(kafka.bootstrap, store, (topic,), starting=RangeBounds(named=EARLIEST)))

    assert again.records == 1_000
    assert again.replaced_files > 0
    assert is_complete(spark, kafka, topic, store)


def test_a_part_of_a_range_can_be_loaded_again(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b"%d" % number for number in range(100)])
    load(spark, LoadConfig(odradek.bootstrap, store, (topic,)))
    middle = LoadConfig(
        odradek.bootstrap,
        store,
        (topic,),
        starting=RangeBounds(offsets={PartitionName(topic, 0): 30}),
        ending=RangeBounds(offsets={PartitionName(topic, 0): 60}),
    )

    assert load(spark, middle).records == 30
    assert [row["offset"] for row in rows(spark, store)] == list(range(100))
    assert spark.read.parquet(store).count() == 100
    assert is_complete(spark, odradek, topic, store)


def test_from_a_time_on(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    create(kafka, topic, 1)
    produce(kafka, topic, [b"early"] * 5)
    produce(kafka, topic, [b"late"] * 5, at_ms=START_MS + 3_600_000)
    load(spark, LoadConfig(kafka.bootstrap, store, (topic,), starting=RangeBounds(at_ms=START_MS + 1_800_000)))

    assert [row["value"] for row in rows(spark, store)] == [b"late"] * 5


def test_topics_by_pattern_and_tasks_of_parts_of_a_range(
    spark: SparkSession, odradek: Broker, topic: str, store: str
) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        create(odradek, name, 1)
        produce(odradek, name, [b"x"] * 50)
    config = LoadConfig(
        odradek.bootstrap, store, pattern=f"{topic}-.", options={"maxRecordsPerPartition": "20", "minPartitions": "4"}
    )

    assert load(spark, config).records == 100
    assert len(Store(store).reading().files) >= 6


def test_aborted_records_are_not_loaded_and_markers_leave_no_hole(
    spark: SparkSession, kafka: Broker, topic: str, store: str
) -> None:
    from confluent_kafka import Producer

    create(kafka, topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for value, end in ((b"kept", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        end()

    assert load(spark, LoadConfig(kafka.bootstrap, store, (topic,))).records == 1
    assert [row["value"] for row in rows(spark, store)] == [b"kept"]
    assert Store(store).reading().covered == {PartitionName(topic, 0): ((0, 4),)}
    assert load(spark, LoadConfig(kafka.bootstrap, store, (topic,))).ranges == []


@pytest.mark.parametrize("name", ["2026", "a.b_c-d"])
def test_a_topic_keeps_its_name(spark: SparkSession, odradek: Broker, name: str, store: str, tmp_path: Path) -> None:
    create(odradek, name, 1)
    produce(odradek, name, [b"x"])
    load(spark, LoadConfig(odradek.bootstrap, store, (name,)))

    assert [row["topic"] for row in rows(spark, store)] == [name]
    assert Cluster(odradek.bootstrap).topics([name])[0].name == name
