"""Tests the other jobs on Iceberg tables: stream, report, replay, maintain."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from pipeline.audit import AuditConfig, MirrorOf, whole
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.iceberg.audit import TableAudit, audit_tables
from pipeline.iceberg.maintain import MaintainConfig, maintain
from pipeline.iceberg.table import LOADED_TAG
from pipeline.mirror import MirrorConfig, mirror
from pipeline.producing import Outgoing, Writer
from pipeline.replay import ReplayConfig, replay
from pipeline.report import ReportConfig, report
from pipeline.sending import SOURCE_OFFSET
from pipeline.source import read_topics
from pipeline.stream import StreamConfig, stream
from pipeline.topics import PartitionName
from tests.interop.brokers import Broker
from tests.pipeline.spark.killing import TIMEOUT_S, killed
from tests.pipeline.spark.records import START_MS, activity, create, produce
from tests.pipeline.spark.tables import NAME, Warehouse, read_by_pyiceberg

pytestmark = pytest.mark.timeout(3 * TIMEOUT_S)
DAY_MS, MINUTE_MS = 86_400_000, 60_000
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
    "delete.retention.ms": "0",
}
"""Configs of a topic that is compacted soon."""
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


def test_an_audit_accounts_for_compaction_of_the_topic(warehouse: Warehouse) -> None:
    create(warehouse.broker, warehouse.topic, configs=COMPACTED)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 4)
    warehouse.load()
    produce(warehouse.broker, warehouse.topic, [b"y", b"y"], at_ms=START_MS + MINUTE_MS)
    produce(warehouse.broker, warehouse.topic, [b"z"], at_ms=START_MS + 2 * MINUTE_MS)  # the segment before is cleaned
    warehouse.load()
    await_compaction(warehouse, warehouse.broker, 5)

    line = warehouse.audit_line()
    assert line.clean
    assert (line.records, line.produced + line.compacted) == (7, 7)
    assert line.compacted >= 2


def test_an_audit_across_clusters_accounts_for_compaction_of_each(warehouse: Warehouse, other: Broker) -> None:
    create(warehouse.broker, warehouse.topic, configs={**COMPACTED, "min.cleanable.dirty.ratio": "1"})
    produce(warehouse.broker, warehouse.topic, [b"x"] * 3)
    with Writer(warehouse.broker.bootstrap, warehouse.topic) as writer:
        writer.write(Outgoing(b"gone", None, [], START_MS + 10, 0))
    produce(warehouse.broker, warehouse.topic, [b"y", b"y"], at_ms=START_MS + MINUTE_MS)
    produce(warehouse.broker, warehouse.topic, [b"z"], at_ms=START_MS + 2 * MINUTE_MS)
    mirror(warehouse.spark, MirrorConfig(warehouse.broker.bootstrap, other.bootstrap, (warehouse.topic,)))
    warehouse.load()
    assert audit_across(warehouse, other).clean
    Cluster(other.bootstrap).set_configs(warehouse.topic, {**COMPACTED, "retention.ms": "-1"})
    await_compaction(warehouse, other, 5)

    across = audit_across(warehouse, other)
    loaded, mirrored = across.lines
    assert across.clean
    assert (loaded.produced, loaded.records, loaded.compacted) == (7, 7, 0)
    assert (mirrored.produced, mirrored.records + mirrored.compacted, mirrored.missing) == (7, 7, 0)
    assert mirrored.compacted >= 2


def test_an_audit_across_clusters_finds_what_a_mirror_lost(warehouse: Warehouse, other: Broker) -> None:
    create(warehouse.broker, warehouse.topic)
    produce(warehouse.broker, warehouse.topic, [b"x"] * 10)
    mirror(warehouse.spark, MirrorConfig(warehouse.broker.bootstrap, other.bootstrap, (warehouse.topic,)))
    warehouse.load()
    there = Cluster(other.bootstrap)
    gone = TopicPartition(warehouse.topic, 0, 4)
    there.admin.delete_records([gone])[gone].result(30)
    assert counts(audit_across(warehouse, other)) == [(10, 0, 0, 0), (6, 0, 4, 0)]

    produce(warehouse.broker, warehouse.topic, [b"not mirrored"])
    produce(other, warehouse.topic, [b"not of the source"])
    with Writer(other.bootstrap, warehouse.topic) as writer:
        writer.write(Outgoing(None, b"with a false header", [(SOURCE_OFFSET, b"x")], START_MS, 0))
    across = audit_across(warehouse, other, only_loaded=True)
    assert counts(across) == [(10, 0, 0, 0), (8, 1, 4, 2)]
    assert [line.doubled for line in across.lines] == [0, 0]
    assert not across.clean


def counts(found: TableAudit) -> list[tuple[int, int, int, int]]:
    return [(line.records, line.missing, line.expired, line.foreign) for line in found.lines]


def audit_across(warehouse: Warehouse, other: Broker, *, only_loaded: bool = False) -> TableAudit:
    config = AuditConfig(
        warehouse.broker.bootstrap, (warehouse.topic,), mirror=MirrorOf(other.bootstrap), only_loaded=only_loaded
    )
    return audit_tables(warehouse.spark, config, warehouse.place)


def await_compaction(warehouse: Warehouse, broker: Broker, records: int) -> None:
    """Waits until the topic has no more than these records at a broker."""
    cluster = Cluster(broker.bootstrap)
    ranges = whole([PartitionName(warehouse.topic, 0)], cluster)
    deadline = time.monotonic() + TIMEOUT_S
    while read_topics(warehouse.spark, cluster, ranges).count() > records:
        assert time.monotonic() < deadline, "the cleaner has done nothing"
        time.sleep(1)  # the cleaner tells nobody
