"""Tests drivers that are killed at any stage: the last committed state remains, and the next run completes it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pipeline.audit import AuditConfig, MirrorOf, audit
from pipeline.load import LoadConfig, load
from pipeline.mirror import MirrorConfig, mirror
from pipeline.store import Store
from pipeline.stream import StreamConfig, stream
from tests.interop.brokers import Broker
from tests.pipeline.spark.killing import TIMEOUT_S, killed
from tests.pipeline.spark.records import activity, create, is_complete

pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)

# stage → is the run committed? The stages within a commit are tests/pipeline/test_store.py's.
STAGES = {"planned": False, "staged": False, "committed": True}


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_load(spark: SparkSession, odradek: Broker, topic: str, store: str, stage: str) -> None:
    create(odradek, topic, 3)
    activity(odradek, topic, 500)
    config = LoadConfig(odradek.bootstrap, store, (topic,))
    load(spark, config)
    activity(odradek, topic, 300, seed=2)
    killed("load", odradek.bootstrap, topic, store, stage)

    if not STAGES[stage]:
        assert spark.read.parquet(store).count() == 500
    assert Store(store).reading().records() == (800 if STAGES[stage] else 500)
    load(spark, config)
    assert is_complete(spark, odradek, topic, store)
    assert spark.read.parquet(store).count() == 800
    assert not any(Store(store).root.glob("_staging/*"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_stream(spark: SparkSession, odradek: Broker, topic: str, store: str, stage: str) -> None:
    create(odradek, topic, 2)
    activity(odradek, topic, 500, partitions=2)
    killed("stream", odradek.bootstrap, topic, store, stage)

    batches = 2 if STAGES[stage] else 1
    assert batches * 180 <= Store(store).reading().records() <= batches * 220
    stream(spark, StreamConfig(odradek.bootstrap, store, (topic,), max_offsets=200))
    assert is_complete(spark, odradek, topic, store)
    assert spark.read.parquet(store).count() == 500


@pytest.mark.parametrize("stage", ["prepared", "written 0", "written 25000", "sent"])
def test_a_killed_mirror(spark: SparkSession, kafka: Broker, other: Broker, topic: str, stage: str) -> None:
    create(kafka, topic, 1)
    activity(kafka, topic, 60_000, partitions=1)
    killed("mirror", kafka.bootstrap, topic, other.bootstrap, stage)

    again = mirror(spark, MirrorConfig(kafka.bootstrap, other.bootstrap, (topic,)))
    assert {"prepared": again == 60_000, "sent": again == 0}.get(stage, again <= 60_000)
    assert audit(spark, AuditConfig(kafka.bootstrap, (topic,), mirror=MirrorOf(other.bootstrap))).clean
