"""Tests that empty directories are formatted for the node, and other nodes' directories are rejected."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path

import pytest

from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.formatting import WrongOwner, random_uuid
from coordinator.cluster.snapshot import read_snapshot, write_snapshot
from protocol.metadata_records.settings import FeatureLevelRecord
from protocol.records.control import KRaftVersionRecord, SnapshotHeaderRecord, VotersRecord
from protocol.types import uuid_to_text
from storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from tests.broker.metadata.harness import OPTIONS, MetadataHarness


def test_an_empty_directory_becomes_a_node_of_a_new_cluster(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    cluster = harness.open()
    (directory,) = harness.directories
    written = read_meta_properties(harness.disk, directory)
    assert written == MetaProperties(cluster.image.cluster_id, 1, cluster.node.directory_ids[directory])
    assert cluster.node.directory_of(cluster.node.directory_ids[directory]) == directory


def test_the_files_of_a_formatted_directory_are_those_of_kafka_storage(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.open()
    (directory,) = harness.directories
    bootstrap = read_snapshot(harness.disk, f"{directory}/bootstrap.checkpoint")
    assert bootstrap.records == bootstrap_records()
    voters = read_snapshot(harness.disk, f"{directory}/__cluster_metadata-0/{0:020}-{0:010}.checkpoint")
    assert voters.records == []
    header, version, who, _ = voters.quorum
    assert isinstance(header, SnapshotHeaderRecord)
    assert version == KRaftVersionRecord(version=0, k_raft_version=1)
    assert isinstance(who, VotersRecord)
    assert [voter.voter_id for voter in who.voters] == [1]


def test_a_cluster_begins_with_the_records_of_the_snapshot_at_offset_0(tmp_path: Path) -> None:
    """kafka-storage of Kafka 4.4 writes them there, instead of into bootstrap.checkpoint."""
    harness = MetadataHarness(tmp_path)
    (directory,) = harness.directories
    features = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    features.append(FeatureLevelRecord(name="share.version", feature_level=1))
    folder = f"{directory}/__cluster_metadata-0"
    harness.disk.mkdir(folder, parents=True)
    path = f"{folder}/{0:020}-{0:010}.checkpoint"
    write_snapshot(harness.disk, path, features, metadata_version=30, last_timestamp=0, now_ms=0)
    write_meta_properties(harness.disk, directory, MetaProperties("the-cluster", 1, b"a-directory-of-1"))
    cluster = harness.open()
    assert dict(cluster.image.features) == {"metadata.version": 30, "share.version": 1}
    written = [record for batch in cluster.metadata_log.batches(0) for record in batch.records]
    assert [record for record in written if isinstance(record, FeatureLevelRecord)] == features


def test_a_cluster_may_be_named(tmp_path: Path) -> None:
    assert MetadataHarness(tmp_path).open(cluster_id="my-cluster").image.cluster_id == "my-cluster"


def test_the_next_start_finds_the_same_cluster_and_directories(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path, ["one", "two"])
    first = harness.open()
    harness.stop(first)
    assert harness.open().node.identity == first.node.identity


def test_a_new_directory_joins_the_others(tmp_path: Path) -> None:
    first = MetadataHarness(tmp_path, ["one"]).open()
    first.close()
    both = MetadataHarness(tmp_path, ["one", "two"]).open()
    assert both.image.cluster_id == first.image.cluster_id
    assert len(set(both.node.directory_ids.values())) == 2


@pytest.mark.parametrize(("properties", "problem"), [
    (MetaProperties("the-cluster", 2, None), r"owned by another broker \(node.id 2 in meta.properties, this one is 1"),
    (MetaProperties("another", 1, None), r"belongs to another cluster \(cluster.id another in meta.properties"),
])  # fmt: skip
def test_what_belongs_to_another_is_refused(tmp_path: Path, properties: MetaProperties, problem: str) -> None:
    harness = MetadataHarness(tmp_path)
    (directory,) = harness.directories
    harness.disk.mkdir(directory)
    write_meta_properties(harness.disk, directory, properties)
    with pytest.raises(WrongOwner, match=problem):
        harness.open(OPTIONS, cluster_id="the-cluster")


def test_ids_are_random_but_never_look_like_an_option_of_a_command() -> None:
    dash, reserved, good = b"\xfb" * 16, bytes(16), bytes(range(16))
    drawn = chain([dash], repeat(good))
    assert random_uuid(lambda _: next(drawn)) == bytes.fromhex("000102030405460788090a0b0c0d0e0f")
    assert not uuid_to_text(random_uuid(lambda _: reserved)).startswith("-")
