"""Tests `stream`: it fills the same store as `load`, batch by batch."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError, TopicChanged
from pipeline.load import LoadConfig, load
from pipeline.progress import BatchProgress, Trigger, TriggerKind
from pipeline.stream import StreamConfig, stream
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import activity, create, is_complete, produce
from tests.pipeline.spark.test_mirror import recreate


def test_a_stream_takes_what_there_is_in_batches_and_then_what_is_new(
    spark: SparkSession, kafka: Broker, topic: str, store: str
) -> None:
    create(kafka, topic, 3)
    activity(kafka, topic, 1_000)
    config = StreamConfig(kafka.bootstrap, store, (topic,), max_offsets=400)
    seen: list[BatchProgress] = []

    assert stream(spark, config, seen.append) == 1_000
    assert len([one for one in seen if one.rows]) == 3
    assert sum(seen[-1].lag.values()) == 0
    activity(kafka, topic, 100, seed=2)
    assert stream(spark, config) == 100
    assert is_complete(spark, kafka, topic, store)


def test_stream_and_load_take_turns(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    create(odradek, topic, 2)
    config = StreamConfig(odradek.bootstrap, store, (topic,))
    load_config = LoadConfig(odradek.bootstrap, store, (topic,))
    produce(odradek, topic, [b"1"] * 10)
    load(spark, load_config)
    produce(odradek, topic, [b"2"] * 10)
    assert stream(spark, config) == 10
    produce(odradek, topic, [b"3"] * 10)
    assert load(spark, load_config).records == 10
    assert is_complete(spark, odradek, topic, store)


def test_late_events_are_told_from_those_that_a_window_waits_for(
    spark: SparkSession, odradek: Broker, topic: str, store: str, tmp_path: Path
) -> None:
    create(odradek, topic, 1)
    event = '{"id":"%s","type":"page_view","user":"u","session":"s","at":%d,"page":"/","query":null}'
    minute = 60_000
    # Spark holds events against the watermark of the batch before: one batch later than windows are closed by it.
    for name, minutes in (("a", 0), ("b", 60), ("c", 120), ("late", 1), ("d", 180)):
        produce(odradek, topic, [(event % (name, 1_790_000_000_000 + minutes * minute)).encode()])
    seen: list[BatchProgress] = []
    config = StreamConfig(odradek.bootstrap, store, (topic,), max_offsets=1, counts=str(tmp_path / "counts"))
    stream(spark, config, seen.append)

    counted = spark.read.parquet(str(tmp_path / "counts")).orderBy("window_start").collect()
    assert [row["events"] for row in counted] == [1, 1, 1]
    assert sum(one.dropped_late for one in seen) == 1


def test_a_stream_of_a_topic_that_was_created_again_ends(
    spark: SparkSession, odradek: Broker, topic: str, store: str
) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b"x"] * 10)
    config = StreamConfig(odradek.bootstrap, store, (topic,))
    stream(spark, config)
    recreate(odradek, topic)
    with pytest.raises(TopicChanged, match=f"{topic} was deleted and created again"):
        stream(spark, config)


def test_a_continuous_stream_to_a_store_is_refused(spark: SparkSession, odradek: Broker, store: str) -> None:
    config = StreamConfig(odradek.bootstrap, store, ("t",), trigger=Trigger(TriggerKind.CONTINUOUS, "1 second"))
    with pytest.raises(PipelineError, match="use --to-topic"):
        stream(spark, config)


def test_records_are_passed_on_continuously_and_none_is_lost_by_a_restart(
    spark: SparkSession, kafka: Broker, topic: str, store: str
) -> None:
    create(kafka, topic, 1)
    create(kafka, f"{topic}-to", 1)
    trigger = Trigger(TriggerKind.CONTINUOUS, "1 second")
    config = StreamConfig(kafka.bootstrap, store, (topic,), trigger=trigger, to_topic=f"{topic}-to")
    passed_on = PartitionName(f"{topic}-to", 0)

    for records in (10, 20):
        produce(kafka, topic, [b"x"] * 5)
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(stream, spark, config)
            produce(kafka, topic, [b"y"] * 5)
            ended = time.monotonic() + 120
            while Cluster(kafka.bootstrap).end_offsets([passed_on])[passed_on] < records and time.monotonic() < ended:
                assert not running.done(), running.result()
            for query in spark.streams.active:
                query.stop()
            running.result(60)
    assert Cluster(kafka.bootstrap).end_offsets([passed_on])[passed_on] >= 20
