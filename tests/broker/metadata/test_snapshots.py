"""Tests snapshots of the metadata log: when they are written, and what is deleted afterwards."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from broker.metadata import snapshots
from broker.metadata.log import log_config
from broker.metadata.opening import Metadata
from broker.metadata.snapshots import SnapshotRules
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, read_snapshot, snapshot_path, stat_snapshot
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.records.control import KRaftVersionRecord, VotersRecord
from storage.config import LogConfig
from tests.broker.metadata.harness import MetadataHarness, now
from tests.coordinator.cluster import given
from tests.coordinator.cluster.test_image_records import everything

HOUR_MS = 60 * 60 * 1000
NEVER = SnapshotRules(retention_bytes=-1, retention_ms=-1)
OFTEN = NEVER._replace(max_record_bytes=1_500)


def small_segments() -> LogConfig:
    return log_config(segment_bytes=2_000)


def create(metadata: Metadata, *names: str) -> None:
    topics = [given.creatable(name, 2, 1) for name in names]
    now(metadata.controller.submit(CreateTopicsRequest(topics=topics), CreateTopicsResponse))


def ids(harness: MetadataHarness) -> list[SnapshotId]:
    return find_snapshots(os.listdir(harness.folder()))


@pytest.fixture
def soon_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "DUE_AT_START_BYTES", 1_500)


@pytest.mark.usefixtures("soon_due")
def test_a_snapshot_is_renewed_at_a_stop_when_enough_was_written(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    for at in range(4):
        metadata = harness.open()
        create(metadata, *(f"topic-{at}-{one}" for one in range(5)))
        harness.stop(metadata)
    latest = ids(harness)[-1]
    assert latest.offset == metadata.metadata_log.end_offset
    snapshot = read_snapshot(harness.disk, snapshot_path(str(harness.folder()), latest))
    assert [type(record) for record in snapshot.quorum[1:3]] == [KRaftVersionRecord, VotersRecord]
    again = harness.open(register=False)
    assert everything(again.image) == everything(metadata.image)
    assert len(again.image.topic_names()) == 20


def test_a_snapshot_is_written_beside_the_clients_as_the_log_grows(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=OFTEN)
    before = ids(harness)
    create(metadata, *(f"topic-{at}" for at in range(20)))
    latest = ids(harness)[-1]
    assert latest not in before
    snapshot = read_snapshot(harness.disk, snapshot_path(str(harness.folder()), latest))
    assert latest.offset <= metadata.metadata_log.high_watermark
    assert snapshot.last_timestamp_ms == harness.clock.time_ms
    assert everything(harness.open(register=False).image) == everything(metadata.image)


async def test_only_what_is_committed_gets_into_a_snapshot(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=NEVER._replace(max_interval_ms=HOUR_MS))
    create(metadata, "committed")
    harness.worker.at_once = False
    request = CreateTopicsRequest(topics=[given.creatable("uncommitted")])
    creation = asyncio.ensure_future(metadata.controller.submit(request, CreateTopicsResponse))
    await asyncio.sleep(0)
    flush, harness.worker.given = harness.worker.given, []
    harness.clock.time_ms += HOUR_MS
    metadata.snapshots.maintain()
    harness.worker.work()
    latest = ids(harness)[-1]
    assert latest.offset == metadata.metadata_log.high_watermark < metadata.metadata_log.end_offset
    records = repr(read_snapshot(harness.disk, snapshot_path(str(harness.folder()), latest)).records)
    assert ("'committed'" in records, "uncommitted" in records, len(flush)) == (True, False, 1)
    assert not creation.done()
    harness.worker.given = flush
    harness.worker.work()
    assert (await creation).topics[0].error_code == 0


def test_a_snapshot_is_written_by_time_where_there_is_news(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=NEVER._replace(max_interval_ms=HOUR_MS))
    before = len(ids(harness))
    metadata.snapshots.maintain()
    assert len(ids(harness)) == before
    harness.clock.time_ms += HOUR_MS
    metadata.snapshots.maintain()
    assert len(ids(harness)) == before + 1
    harness.clock.time_ms += HOUR_MS
    metadata.snapshots.maintain()
    assert len(ids(harness)) == before + 1


def test_without_an_interval_time_writes_no_snapshot(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=NEVER._replace(max_interval_ms=0))
    before = ids(harness)
    harness.clock.time_ms += 100 * HOUR_MS
    metadata.snapshots.maintain()
    assert ids(harness) == before


def test_what_is_too_large_is_cut_before_the_oldest_snapshot_that_stays(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=OFTEN._replace(retention_bytes=6_000), config=small_segments())
    for at in range(40):
        create(metadata, f"topic-{at}")
    remaining = ids(harness)
    assert SnapshotId(0, 0) not in remaining
    assert 0 < metadata.metadata_log.start_offset <= remaining[-1].offset
    segments = sorted(int(path.stem) for path in harness.folder().glob("*.log"))
    assert 0 not in segments
    again = harness.open(register=False, config=small_segments())
    assert everything(again.image) == everything(metadata.image)


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=OFTEN._replace(retention_ms=HOUR_MS))
    create(metadata, *(f"topic-{at}" for at in range(20)))
    assert ids(harness)[0] == SnapshotId(0, 0)
    harness.clock.time_ms += 2 * HOUR_MS
    create(metadata, *(f"later-{at}" for at in range(20)))
    metadata.snapshots.maintain()
    assert len(ids(harness)) == 1
    assert metadata.metadata_log.start_offset == ids(harness)[0].offset
    assert everything(harness.open(register=False).image) == everything(metadata.image)


def test_the_only_snapshot_stays_however_old_and_large(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(rules=NEVER._replace(retention_ms=1, retention_bytes=1, max_interval_ms=0))
    harness.clock.time_ms += HOUR_MS
    metadata.snapshots.maintain()
    assert ids(harness) == [SnapshotId(0, 0)]


def test_what_was_left_halfway_goes_at_the_next_start(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    for name in (f"{7:020}-{1:010}.checkpoint.part", f"{5:020}-{1:010}.checkpoint.deleted"):
        (harness.folder() / name).write_bytes(b"half")
    harness.open()
    assert not [name for name in os.listdir(harness.folder()) if name.endswith((".part", ".deleted"))]


def test_a_snapshot_of_a_later_epoch_is_newer_whatever_its_offset() -> None:
    names = [SnapshotId(900, 1).file_name, SnapshotId(500, 2).file_name, "00000000000000000000.log"]
    assert find_snapshots(names) == [SnapshotId(900, 1), SnapshotId(500, 2)]


def test_a_snapshots_age_is_that_of_the_last_record_it_stands_for(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.open()
    (first,) = ids(harness)
    file = stat_snapshot(harness.disk, str(harness.folder()), first)
    assert file.last_timestamp_ms == harness.clock.time_ms
    assert file.size_bytes == (harness.folder() / first.file_name).stat().st_size
    (harness.folder() / SnapshotId(3, 1).file_name).write_bytes(b"\x00" * 40)
    assert stat_snapshot(harness.disk, str(harness.folder()), SnapshotId(3, 1)).last_timestamp_ms == 0
