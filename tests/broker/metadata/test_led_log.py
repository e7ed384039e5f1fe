"""Tests the log of a quorum whose only voter is this node: its epochs, its voters, and the records that others may
fetch."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from broker.metadata.led_log import LedLog
from broker.metadata.log import log_config
from broker.metadata.opening import Metadata
from broker.metadata.snapshots import SnapshotRules
from broker.steps import STEP_MS
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.formatting import WrongOwner, claim
from coordinator.cluster.quorum_state import QuorumState, read_quorum_state
from coordinator.cluster.record import MetadataRecord, encode_batch
from coordinator.cluster.snapshot import SnapshotId, snapshot_path, write_snapshot
from protocol.errors import KafkaError
from protocol.metadata_records.log import NoOpRecord
from protocol.records.control import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VoterEndpoint,
    VotersRecord,
)
from tests.broker.metadata.harness import OPTIONS, MetadataHarness, now
from tests.coordinator.cluster import given

REACHABLE = OPTIONS._replace(controller_listeners=(Endpoint("CONTROLLER", "c.example", 9093),), is_reachable=True)
LEVEL = 30
ALL = 1 << 20


def formatted(tmp_path: Path) -> MetadataHarness:
    """Formats a node whose directory names its voter and the voter's address."""
    harness = MetadataHarness(tmp_path)
    claim(
        harness.directories, harness.directories[0], OPTIONS.node_id, REACHABLE.controller_listeners, None,
        lambda: harness.random_bytes(16), disk=harness.disk, now_ms=0,
    )  # fmt: skip
    return harness


def led(metadata: Metadata) -> LedLog:
    assert metadata.led_log is not None
    return metadata.led_log


def append(log: LedLog, records: list[MetadataRecord]) -> int:
    return log.append(encode_batch(records, LEVEL, 0), records)


def endpoints(metadata: Metadata) -> list[VoterEndpoint]:
    voters = metadata.loader.voters
    assert voters is not None
    (voter,) = voters.voters
    return voter.endpoints


def openings(metadata: Metadata) -> list[list[type]]:
    """Returns the types of the control records at the beginning of each epoch."""
    batches = metadata.metadata_log.batches(0)
    return [[type(record) for record in batch.quorum] for batch in batches if batch.quorum]


def test_each_start_begins_an_epoch_and_names_the_voter_once(tmp_path: Path) -> None:
    harness = formatted(tmp_path)
    for _ in range(3):
        metadata = harness.open(REACHABLE)
        harness.stop(metadata)
    metadata = harness.open(REACHABLE, register=False)
    assert metadata.metadata_log.epoch == 4
    assert openings(metadata) == [
        [LeaderChangeMessage, KRaftVersionRecord, VotersRecord], *([LeaderChangeMessage],) * 3
    ]  # fmt: skip
    assert endpoints(metadata) == [VoterEndpoint(name="CONTROLLER", host="c.example", port=9093)]


def test_the_voter_is_named_anew_where_it_is_reached_elsewhere(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    harness.stop(harness.open(REACHABLE))
    assert openings(harness.open(register=False))[1:] == [[LeaderChangeMessage, VotersRecord], [LeaderChangeMessage]]


def test_one_that_nobody_reaches_leaves_the_voter_where_it_was(tmp_path: Path) -> None:
    harness = formatted(tmp_path)
    harness.stop(harness.open(REACHABLE))
    assert endpoints(harness.open(register=False)) == [VoterEndpoint(name="CONTROLLER", host="c.example", port=9093)]


def test_a_controller_for_others_does_not_begin_a_cluster_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(WrongOwner, match=r"meta\.properties is missing, .* format it with"):
        MetadataHarness(tmp_path).open(REACHABLE)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("voters", [(1, 2, 3), (2,)])
def test_a_quorum_with_other_voters_is_not_led(tmp_path: Path, voters: tuple[int, ...]) -> None:
    harness = MetadataHarness(tmp_path)
    harness.stop(harness.open())
    levels = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
    record = VotersRecord(
        version=0,
        voters=[
            Voter(voter_id=one, voter_directory_id=bytes([one]) * 16, endpoints=[], k_raft_version_feature=levels)
            for one in voters
        ],
    )
    latest = SnapshotId(5, 1)
    write_snapshot(
        harness.disk, snapshot_path(str(harness.folder()), latest), (), metadata_version=LEVEL, last_timestamp=0,
        now_ms=0, epoch=1, quorum=(KRaftVersionRecord(version=0, k_raft_version=1), record),
    )  # fmt: skip
    state = (harness.folder() / "quorum-state").read_text()
    with pytest.raises(
        KafkaError, match=f"the voters {', '.join(map(str, voters))}; node.id 1 can lead it only as its only"
    ):
        harness.open()
    assert (harness.folder() / "quorum-state").read_text() == state, "it claimed an epoch"


async def test_a_voter_of_the_configuration_is_stored_in_version_0(tmp_path: Path) -> None:
    harness = formatted(tmp_path)
    (harness.folder() / SnapshotId(0, 0).file_name).unlink()
    cluster = harness.open(REACHABLE)
    state = read_quorum_state(harness.disk, str(harness.folder()))
    assert (state, cluster.loader.voters) == (QuorumState(1, 1, voters=(1,)), None)


async def test_others_run_while_a_large_batch_is_committed(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    harness.clock.monotonic_ms = count(step=STEP_MS).__next__  # type: ignore[method-assign]
    metadata = harness.open()
    log, image = led(metadata), metadata.image
    before = image.offset
    end = append(log, given.topic("orders", 2_000))
    committed = asyncio.ensure_future(log.committed(end))
    await asyncio.sleep(0)
    assert (log.high_watermark, image.offset, image.topic("orders")) == (end, before, None)
    await committed
    assert image.offset == end - 1
    assert image.topic("orders") is not None


def test_a_snapshot_is_read_in_pieces_until_it_goes(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    metadata = harness.open(
        rules=SnapshotRules(max_record_bytes=1, retention_bytes=-1, retention_ms=-1),
        config=log_config(segment_bytes=2_000),
    )
    log, (*_, latest) = led(metadata), metadata.snapshots.ids
    content = Path(snapshot_path(str(harness.folder()), latest)).read_bytes()
    first, rest = log.read_snapshot_piece(latest, 0, 10), log.read_snapshot_piece(latest, 10, ALL)
    assert first is not None
    assert rest is not None
    assert (first.content + rest.content, first.size_bytes) == (content, len(content))
    assert log.read_snapshot_piece(latest, len(content), 10) == (b"", len(content))
    assert log.read_snapshot_piece(latest, -1, 10) == (b"", len(content))
    log.delete_snapshots([latest])
    assert log.read_snapshot_piece(latest, 0, 10) is None


def test_the_uncommitted_end_of_the_last_run_is_on_the_device_before_it_counts(tmp_path: Path) -> None:
    harness = MetadataHarness(tmp_path)
    first = harness.open()
    harness.worker.at_once = False
    end = append(led(first), [NoOpRecord()])  # a kill: neither flushed nor closed
    harness.worker.at_once = True
    again = harness.open(register=False)
    assert again.metadata_log.high_watermark > end
    assert again.image.offset == again.metadata_log.high_watermark - 1
    assert now(led(again).committed(end)) is None
