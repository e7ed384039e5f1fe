"""Loading: snapshots, what follows them, and transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.snapshot import SnapshotId, write_snapshot
from protocol.errors import KafkaError
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.metadata_records.settings import FeatureLevelRecord
from storage.disk import OsDisk
from tests.broker.metadata.harness import MetadataHarness
from tests.coordinator.cluster import given

BEGIN, END, ABORT = BeginTransactionRecord(name="b"), EndTransactionRecord(), AbortTransactionRecord(reason="r")
LEVEL = FeatureLevelRecord(name="group.version", feature_level=1)


def replayed(*records: MetadataRecord) -> tuple[dict[str, int], bool]:
    loader = MetadataLoader(Image("c"))
    loader.commit(MetadataBatch(0, len(records) - 1, 1, 100, 5, records))
    return loader.image.features, loader.in_transaction


def test_records_of_a_transaction_count_once_it_ends() -> None:
    assert replayed(BEGIN, LEVEL) == ({}, True)
    assert replayed(BEGIN, LEVEL, END) == ({"group.version": 1}, False)


def test_records_of_an_aborted_transaction_are_void() -> None:
    assert replayed(BEGIN, LEVEL, ABORT) == ({}, False)


def put_snapshot(harness: MetadataHarness, offset: int, *records: MetadataRecord) -> None:
    path = harness.folder() / SnapshotId(offset, 1).file_name
    write_snapshot(
        OsDisk(), str(path), [*bootstrap_records(), *records], metadata_version=30, last_timestamp=0, now_ms=0
    )


def test_a_snapshot_beyond_the_log_is_where_the_log_goes_on(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    put_snapshot(harness, 5_000, *given.topic("orders"))
    cluster = harness.open()
    assert cluster.image.topic("orders") is not None
    assert cluster.metadata_log.start_offset == 5_000
    assert cluster.node.broker_epoch > 5_000
    harness.stop(cluster)
    assert harness.open().image.topic("orders") is not None


async def test_a_snapshot_within_the_log_is_followed_by_the_rest_of_it(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    harness.stop(cluster)
    put_snapshot(harness, cluster.metadata_log.end_offset, *given.topic("in-the-snapshot"))
    cluster = harness.open()
    await cluster.controller.create_topics(CreateTopicsRequest(topics=[given.creatable("after-it")]))
    harness.stop(cluster)
    again = harness.open(register=False)
    assert again.image.topic_names() == ["after-it", "in-the-snapshot"]
    assert again.image.offset == again.metadata_log.high_watermark - 1


def test_a_damaged_snapshot_is_named(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    (harness.folder() / SnapshotId(9, 1).file_name).write_bytes(b"\x00" * 100)
    with pytest.raises(KafkaError, match=r"0{19}9-0{9}1\.checkpoint"):
        harness.open()


def test_a_metadata_version_of_the_future_is_refused(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    harness.stop(cluster)
    put_snapshot(
        harness, cluster.metadata_log.end_offset, FeatureLevelRecord(name="metadata.version", feature_level=31)
    )
    with pytest.raises(KafkaError, match=r"metadata.version 31: 30 is the newest known"):
        harness.open()
