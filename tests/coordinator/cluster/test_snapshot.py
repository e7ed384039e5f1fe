"""Tests that snapshots are written and read as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, read_snapshot, write_snapshot
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_batches
from storage.disk import OsDisk
from tests.coordinator.cluster import given

DISK = OsDisk()


def write(path: Path, partitions: int) -> None:
    records = given.topic("orders", partitions)
    write_snapshot(DISK, str(path), records, metadata_version=30, last_timestamp=7, now_ms=8, epoch=3)


def test_a_snapshot_gives_its_records_back(tmp_path: Path) -> None:
    write(tmp_path / "s", 2_500)
    snapshot = read_snapshot(DISK, str(tmp_path / "s"))
    assert snapshot.records == given.topic("orders", 2_500)
    headers = [header for _, header in iter_batches((tmp_path / "s").read_bytes())]
    assert [(header.base_offset, header.is_control) for header in headers] == [
        (0, True),
        (1, False),
        (1001, False),
        (2001, False),
        (2502, True),
    ]
    assert {header.partition_leader_epoch for header in headers} == {3}


def test_a_snapshot_without_its_footer_was_never_finished(tmp_path: Path) -> None:
    write(tmp_path / "s", 1)
    content = (tmp_path / "s").read_bytes()
    *_, (footer, _) = iter_batches(content)
    (tmp_path / "s").write_bytes(content[:footer])
    with pytest.raises(KafkaError, match="has no footer"):
        read_snapshot(DISK, str(tmp_path / "s"))


def test_a_damaged_snapshot_is_found_out(tmp_path: Path) -> None:
    write(tmp_path / "s", 1)
    content = bytearray((tmp_path / "s").read_bytes())
    content[120] ^= 1
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(KafkaError) as caught:
        read_snapshot(DISK, str(tmp_path / "s"))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_snapshots_are_known_by_their_names() -> None:
    names = [f"{20:020}-{2:010}.checkpoint", f"{0:020}-{0:010}.checkpoint", "bootstrap.checkpoint", f"{0:020}.log"]
    assert find_snapshots([*names, f"{30:020}-{2:010}.checkpoint.deleted"]) == [SnapshotId(0, 0), SnapshotId(20, 2)]
    assert SnapshotId(20, 2).file_name == names[0]


def test_an_empty_registry_has_nothing() -> None:
    image = Image("c")
    assert (image.offset, image.metadata_version, image.topic_names()) == (-1, 7, [])
