"""Tests the other jobs on Iceberg tables: stream, report, replay, maintain."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.iceberg.maintain import MaintainConfig, maintain
from pipeline.iceberg.table import LOADED_TAG
from pipeline.replay import ReplayConfig, replay
from pipeline.report import ReportConfig, report
from pipeline.stream import StreamConfig, stream
from tests.pipeline.spark.killing import TIMEOUT_S, killed
from tests.pipeline.spark.records import activity, create, produce
from tests.pipeline.spark.tables import NAME, Warehouse, read_by_pyiceberg

pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)
DAY_MS = 86_400_000
NOW_MS = int(time.time() * 1000)


def stream_of(warehouse: Warehouse, **options: object) -> StreamConfig:
    checkpoint = str(warehouse.folder / "checkpoint")
    return StreamConfig(
        warehouse.broker.bootstrap, None, (warehouse.topic,), tables=warehouse.place, checkpoint=checkpoint, **options
    )


def test_a_stream_fills_a_table_and_loads_take_turns(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 2)
    activity(warehouse.broker, warehouse.topic, 500, partitions=2)
    assert stream(warehouse.spark, stream_of(warehouse, max_offsets=200)) == 500
    activity(warehouse.broker, warehouse.topic, 100, seed=2, partitions=2)
    assert warehouse.load().records == 100
    activity(warehouse.broker, warehouse.topic, 50, seed=3, partitions=2)
    stream(warehouse.spark, stream_of(warehouse))  # which reads what the load has published once more

    assert len(set(warehouse.offsets())) == len(warehouse.offsets()) == 650
    assert warehouse.audit().clean


@pytest.mark.parametrize("stage", ["staged", "committed"])
def test_a_killed_stream_repeats_no_batch(warehouse: Warehouse, stage: str) -> None:
    create(warehouse.broker, warehouse.topic, 2)
    activity(warehouse.broker, warehouse.topic, 500, partitions=2)
    killed("table stream", warehouse.broker.bootstrap, warehouse.topic, str(warehouse.folder), stage)
    stream(warehouse.spark, stream_of(warehouse, max_offsets=200))

    assert len(set(warehouse.offsets())) == len(warehouse.offsets()) == 500
    assert warehouse.audit().clean


def test_a_report_and_a_replay_read_a_table(warehouse: Warehouse, tmp_path: Path) -> None:
    create(warehouse.broker, warehouse.topic, 2)
    activity(warehouse.broker, warehouse.topic, 300, partitions=2)
    warehouse.load()
    made = report(
        warehouse.spark, ReportConfig(str(tmp_path / "report"), (warehouse.topic,), tables=warehouse.place, top=3)
    )
    ids = {json.loads(value)["id"] for (value,) in warehouse.rows("value")}
    assert sum(row["events"] for row in made.tables["events_by_type"]) == len(ids)

    again = f"{warehouse.topic}-again"
    counts = replay(
        warehouse.spark,
        ReplayConfig(warehouse.broker.bootstrap, None, (warehouse.topic,), tables=warehouse.place, to=again),
    )
    assert sum(counts.values()) == 300
    (tmp_path / "again").mkdir()
    other = Warehouse.of(warehouse.spark, warehouse.broker, again, tmp_path / "again")
    other.load()
    assert other.rows("partition", "offset", "key", "value", "timestamp") == warehouse.rows(
        "partition", "offset", "key", "value", "timestamp"
    )


def test_care_merges_files_and_keeps_what_loads_need(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, 2)
    for seed in range(4):
        activity(warehouse.broker, warehouse.topic, 50, seed=seed, partitions=2)
        warehouse.load()
    orphan = warehouse.folder / "tables/kafka/loaded/data/orphan.parquet"
    orphan.write_bytes(b"left by a killed task")
    os.utime(orphan, (NOW_MS / 1000 - 4 * 86_400,) * 2)
    before = warehouse.offsets()
    ages = {"keep_snapshots_ms": -DAY_MS, "keep_orphans_ms": 3 * DAY_MS, "file_bytes": 2**20}

    (planned,) = maintain(
        warehouse.spark, MaintainConfig((warehouse.topic,), NOW_MS, **ages, dry_run=True), warehouse.place
    )
    assert orphan.exists()
    assert warehouse.offsets() == before
    (done,) = maintain(warehouse.spark, MaintainConfig((warehouse.topic,), NOW_MS, **ages), warehouse.place)
    assert planned.before == done.before
    assert done.before.orphans == 1
    assert done.before.data_files >= 8
    assert planned.after.data_files == done.after.data_files < done.before.data_files
    assert done.after.bytes < done.before.bytes
    assert (done.after.small_files, done.after.orphans) == (0, 0)
    assert planned.after.snapshots == done.after.snapshots == 1
    assert not orphan.exists()

    assert warehouse.offsets() == before
    assert warehouse.audit().clean
    assert LOADED_TAG in read_by_pyiceberg(warehouse.folder).metadata.refs
    produce(warehouse.broker, warehouse.topic, [b"x"])
    assert warehouse.load().records == 1
    assert warehouse.audit().clean


def test_care_removes_the_deletes_of_an_upserted_table(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    for _ in range(3):
        produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
        warehouse.load(upsert=True)
    config = MaintainConfig((warehouse.topic,), NOW_MS, DAY_MS, 3 * DAY_MS, 2**20)
    done = maintain(warehouse.spark, config, warehouse.place)[0]
    assert done.before.delete_files >= 1
    assert (done.after.data_files, done.after.delete_files) == (1, 0)
    assert len(warehouse.offsets()) == 10
    assert warehouse.audit().clean


def test_care_of_no_table_with_young_orphans_or_empty_files_is_rejected(warehouse: Warehouse) -> None:
    with pytest.raises(PipelineError, match=f"has no table {NAME}"):
        maintain(warehouse.spark, MaintainConfig(("t",), NOW_MS, 0, DAY_MS, 2**20), warehouse.place)
    with pytest.raises(PipelineError, match="--keep-orphans: at least 1d"):
        maintain(warehouse.spark, MaintainConfig(("t",), NOW_MS, 0, DAY_MS - 1, 2**20), warehouse.place)
    with pytest.raises(PipelineError, match="--file-mib: at least 1"):
        maintain(warehouse.spark, MaintainConfig(("t",), NOW_MS, 0, DAY_MS, 0), warehouse.place)


def test_an_audit_accounts_for_retention(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    warehouse.load()
    gone = TopicPartition(warehouse.topic, 0, 4)
    cluster = Cluster(warehouse.broker.bootstrap)
    cluster.admin.delete_records([gone])[gone].result(30)
    (line,) = warehouse.audit().lines
    assert (line.clean, line.produced, line.records, line.expired) == (True, 6, 10, 4)
