"""Tests `mirror` and `replay`: they write the same records, in the same order, once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig, MirrorOf, audit
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError, TopicChanged
from pipeline.load import LoadConfig, load
from pipeline.mirror import MirrorConfig, Round, mirror
from pipeline.producing import FencedWriter, Outgoing
from pipeline.replay import ReplayConfig, replay
from pipeline.sending import SOURCE_OFFSET, SOURCE_TOPIC_ID, transactional_id
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.pipeline.spark.records import START_MS, activity, create, produce, rows


def mirrored(spark: SparkSession, source: Broker, target: Broker, topic: str, prefix: str = "") -> bool:
    config = AuditConfig(source.bootstrap, (topic,), mirror=MirrorOf(target.bootstrap, prefix))
    return audit(spark, config).clean


def test_a_mirror_is_complete_and_goes_on_where_it_was(
    spark: SparkSession, kafka: Broker, other: Broker, topic: str
) -> None:
    create(kafka, topic, 3, {"max.message.bytes": "123456"})
    activity(kafka, topic, 2_000)
    config = MirrorConfig(kafka.bootstrap, other.bootstrap, (topic,), max_records=900)
    rounds: list[Round] = []

    assert mirror(spark, config, rounds.append) == 2_000
    assert len(rounds) > 1
    assert sum(rounds[-1].lag.values()) == 0
    assert mirror(spark, config) == 0
    activity(kafka, topic, 300, seed=2)
    assert mirror(spark, config) == 300

    assert mirrored(spark, kafka, other, topic)
    there = Cluster(other.bootstrap)
    assert len(there.topics([topic])[0].partitions) == 3
    assert there.configs(topic) == {"retention.ms": "-1", "max.message.bytes": "123456"}


def test_a_mirror_follows_a_topic_that_gained_partitions(
    spark: SparkSession, odradek: Broker, other: Broker, topic: str
) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b"x"] * 10)
    config = MirrorConfig(odradek.bootstrap, other.bootstrap, (topic,), prefix="copy.")
    mirror(spark, config)
    Cluster(odradek.bootstrap).grow(topic, 2)
    produce(odradek, topic, [b"y"] * 5, partition=1)

    assert mirror(spark, config) == 5
    assert mirrored(spark, odradek, other, topic, "copy.")


def test_a_mirror_that_was_taken_for_dead_writes_nothing_more(
    spark: SparkSession, kafka: Broker, other: Broker, topic: str
) -> None:
    create(kafka, topic, 1)
    produce(kafka, topic, [b"x"] * 10)
    create(other, topic, 1)
    headers = [(SOURCE_TOPIC_ID, Cluster(kafka.bootstrap).topics([topic])[0].id.encode()), (SOURCE_OFFSET, b"0")]
    record = Outgoing(b"k0", b"x", headers, START_MS, 0)

    with (
        pytest.raises(PipelineError, match="fenced"),
        FencedWriter(other.bootstrap, topic, transactional_id(PartitionName(topic, 0))) as writer,
    ):
        writer.write(record)
        assert mirror(spark, MirrorConfig(kafka.bootstrap, other.bootstrap, (topic,))) == 10
        writer.write(record)
    assert mirrored(spark, kafka, other, topic)


def test_a_partition_is_mirrored_by_one_task(spark: SparkSession) -> None:
    config = MirrorConfig("source:1", "target:1", ("t",), options={"maxRecordsPerPartition": "5"})
    with pytest.raises(PipelineError, match="maxRecordsPerPartition: a mirror must write each partition in order"):
        mirror(spark, config)


def test_a_mirror_does_not_write_after_records_of_others(
    spark: SparkSession, odradek: Broker, other: Broker, topic: str
) -> None:
    for broker in (odradek, other):
        create(broker, topic, 1)
        produce(broker, topic, [b"x"] * 3)
    with pytest.raises(PipelineError, match=f"{topic}-0 offset 2 was not written by a mirror of {topic}-0"):
        mirror(spark, MirrorConfig(odradek.bootstrap, other.bootstrap, (topic,)))


def test_a_mirror_of_a_topic_that_was_created_again_ends(
    spark: SparkSession, odradek: Broker, other: Broker, topic: str
) -> None:
    create(odradek, topic, 1)
    produce(odradek, topic, [b"x"] * 3)
    config = MirrorConfig(odradek.bootstrap, other.bootstrap, (topic,))
    mirror(spark, config)
    recreate(odradek, topic)
    with pytest.raises(TopicChanged, match=rf"{topic} was deleted and created again.* up to offset 2"):
        mirror(spark, config)


def recreate(broker: Broker, topic: str) -> None:
    """Deletes the topic, and creates another topic with the same name."""
    admin = Cluster(broker.bootstrap).admin
    admin.delete_topics([topic])[topic].result(30)
    while topic in admin.list_topics(timeout=10).topics:
        pass
    create(broker, topic, 1)
    produce(broker, topic, [b"new"] * 5)


def test_what_was_loaded_is_replayed_in_order(spark: SparkSession, kafka: Broker, topic: str, store: str) -> None:
    create(kafka, topic, 3)
    create(kafka, f"{topic}-again", 3)
    activity(kafka, topic, 1_000)
    load(spark, LoadConfig(kafka.bootstrap, store, (topic,)))
    config = ReplayConfig(kafka.bootstrap, store, (topic,), to=f"{topic}-again")
    assert sum(replay(spark, config).values()) == 1_000

    load(spark, LoadConfig(kafka.bootstrap, f"{store}-again", (f"{topic}-again",)))
    columns = ("partition", "offset", "key", "value", "headers", "timestamp")
    first, second = (
        [tuple(row[name] for name in columns) for row in rows(spark, where)] for where in (store, f"{store}-again")
    )
    assert first == second
    with pytest.raises(PipelineError, match=r"has offsets 0 to \d+ already; --accept-records writes after them"):
        replay(spark, config)


def test_a_replay_keeps_the_recorded_pace(spark: SparkSession, odradek: Broker, topic: str, store: str) -> None:
    create(odradek, topic, 2)
    activity(odradek, topic, 200, partitions=2)
    load(spark, LoadConfig(odradek.bootstrap, store, (topic,)))
    create(odradek, f"{topic}-paced", 2)
    waits: list[float] = []
    config = ReplayConfig(odradek.bootstrap, store, (topic,), to=f"{topic}-paced", pace=1.0)

    assert sum(replay(spark, replace(config, pace=0.5), waits.append).values()) == 200
    stamps = sorted(row["timestamp"].timestamp() for row in rows(spark, store))
    assert max(waits) == pytest.approx((stamps[-1] - stamps[0]) / 0.5, rel=0.05)
