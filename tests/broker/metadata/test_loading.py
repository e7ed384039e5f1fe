"""Tests loading: snapshots, the records after them, and transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.metadata.followed_log import FollowedLog
from broker.metadata.loading import load
from broker.metadata.log import open_metadata_log
from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.snapshot import SnapshotId, write_snapshot
from protocol.errors import KafkaError
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
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


def test_a_follower_s_log_goes_on_at_a_snapshot_beyond_it(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    put_snapshot(harness, 5_000, *given.topic("orders"))
    log = open_metadata_log(
        FollowedLog, harness.directories[0], disk=harness.disk, clock=harness.clock, worker=harness.worker
    )
    loader = MetadataLoader(Image("c"))
    load(loader, log, harness.disk)
    assert loader.image.topic("orders") is not None
    assert (log.start_offset, log.end) == (5_000, (5_000, 1))


async def test_a_snapshot_within_the_log_is_followed_by_the_rest_of_it(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    harness.stop(cluster)
    put_snapshot(harness, cluster.metadata_log.end_offset, *given.topic("in-the-snapshot"))
    cluster = harness.open()
    await cluster.controller.submit(CreateTopicsRequest(topics=[given.creatable("after-it")]), CreateTopicsResponse)
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
        harness, cluster.metadata_log.end_offset, FeatureLevelRecord(name="metadata.version", feature_level=34)
    )
    with pytest.raises(KafkaError, match=r"metadata.version 34; the newest that is supported is 33"):
        harness.open()
