"""Tests an observer's log and image with a leader that the test controls: answers that are lost, late, from another
node, or invalid."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.metadata.controllers import Controllers
from broker.metadata.followed_log import FollowedLog
from broker.metadata.loading import load
from broker.metadata.log import open_metadata_log
from broker.metadata.observing import Observing, QuorumTimes
from broker.metadata.snapshots import SnapshotRules, Snapshots
from client.settings import Settings
from coordinator.cluster.image import Image
from coordinator.cluster.image_records import records_of
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum_state import QuorumState, read_quorum_state
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, write_snapshot
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.observer import FetchLimits, Observer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchResponse, NodeEndpoint
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from protocol.metadata_records.topics import RemoveTopicRecord
from storage.disk import OsDisk
from tests.broker.metadata.harness import HandWorker
from tests.broker.metadata.quorums import FakeLeader, Threads, batch, lost
from tests.clock import ManualClock
from tests.coordinator.cluster import given

HERE, THERE = Location("a", 9093), Location("b", 9093)
OTHER_ID = b"another-topic's-"


class ObserverHarness:
    """An observer, which is opened repeatedly on a directory, and its controllers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = OsDisk()
        self.clock = ManualClock(ahead_ms=5_000_000)
        self.leader = FakeLeader()
        self.peers = {HERE: self.leader}
        self.failures: list[KafkaError] = []
        self.open()

    def open(self) -> None:
        worker = HandWorker()
        self.log = open_metadata_log(FollowedLog, str(self.folder), disk=self.disk, clock=self.clock, worker=worker)
        self.loader = MetadataLoader(Image("the-cluster"))
        for snapshot_id in self.log.snapshots()[-1:]:
            self.log.begin_at(snapshot_id)
        load(self.loader, self.log, self.disk)
        self.log.listen(self.loader.commit)
        self.snapshots = Snapshots(
            self.loader, self.log, SnapshotRules(), 0, disk=self.disk, clock=self.clock, worker=worker
        )
        self.leadership = Leadership(read_quorum_state(self.disk, self.log.directory), {}, tuple(self.peers))
        self.controllers = Controllers(self.leadership, Settings(), self.clock, lambda: 0.5)
        self.controllers._peers = self.peers  # type: ignore[assignment]  # played by the test
        self.observing = Observing(
            Observer("the-cluster", 7, b"directory-seven-", self.leadership, FetchLimits(snapshot_bytes=100)),
            self.log,
            self.loader,
            self.snapshots,
            self.controllers,
            QuorumTimes(),
            "CONTROLLER",
            Threads(),
            self.failures.append,
        )

    async def round(self, times: int = 1) -> None:
        for _ in range(times):
            await self.observing._round()

    @property
    def topics(self) -> list[str]:
        return self.loader.image.topic_names()

    def snapshot_of(self, offset: int, *records: MetadataRecord) -> tuple[SnapshotId, bytes]:
        """Returns a leader's snapshot."""
        snapshot_id = SnapshotId(offset, self.leader.epoch)
        path = self.folder / "made"
        image = given.image(*records)
        write_snapshot(
            self.disk, str(path), list(records_of(image)), metadata_version=30, last_timestamp=5, now_ms=9, epoch=1
        )
        return snapshot_id, path.read_bytes()

    def snapshots_on_disk(self) -> list[SnapshotId]:
        return find_snapshots(name.name for name in Path(self.log.directory).iterdir())


@pytest.fixture
def harness(tmp_path: Path) -> ObserverHarness:
    return ObserverHarness(tmp_path)


async def test_what_is_committed_is_in_the_image_and_the_rest_in_the_log(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    harness.leader.write(*given.topic("invoices", topic_id=OTHER_ID), committed=False)
    await harness.round(2)
    assert harness.topics == ["orders"]
    assert (harness.log.high_watermark, harness.log.end_offset, harness.loader.image.offset) == (2, 4, 1)
    harness.leader.high_watermark = 4
    await harness.round()
    assert harness.topics == ["invoices", "orders"]
    assert harness.observing.is_current


async def test_a_high_watermark_beyond_the_log_is_taken_as_far_as_there_are_records(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    harness.leader.high_watermark = (1 << 63) - 1
    await harness.round(2)
    assert (harness.log.high_watermark, harness.topics) == (2, ["orders"])
    assert not harness.observing.is_current


async def test_a_high_watermark_never_goes_back(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    await harness.round(2)
    for high_watermark in (0, -1, -(1 << 63)):
        harness.leader.high_watermark = high_watermark
        await harness.round()
    assert (harness.log.high_watermark, harness.topics) == (2, ["orders"])


async def test_a_lost_answer_costs_a_round(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    harness.leader.answers = [lost(), lost()]
    await harness.round(4)
    assert harness.topics == ["orders"]


async def test_a_restart_goes_on_where_the_log_ends(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    await harness.round(2)
    harness.log.close()
    harness.open()
    assert harness.topics == []
    harness.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await harness.round()
    assert harness.topics == ["invoices", "orders"]
    assert read_quorum_state(harness.disk, harness.log.directory) == QuorumState(100, 1, voters=())


async def test_a_new_leader_is_found_and_what_the_old_one_had_not_committed_goes(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    harness.leader.write(*given.topic("lost", topic_id=OTHER_ID), committed=False)
    await harness.round(2)
    successor = FakeLeader(101, epoch=2)
    successor.log = harness.leader.log[:1]
    successor.high_watermark = 2
    successor.write(*given.topic("invoices", topic_id=OTHER_ID))
    harness.peers[THERE] = successor
    harness.leadership.locate([fetch_endpoint(101, THERE)])
    harness.leader.answers = [lost()]
    harness.leader.leader_id = harness.leader.epoch = -1
    await harness.round(6)
    assert harness.topics == ["invoices", "orders"]
    assert (harness.log.end_offset, harness.leadership.state) == (4, QuorumState(101, 2))
    assert harness.failures == []


async def test_an_observer_far_behind_begins_with_the_leader_s_snapshot(harness: ObserverHarness) -> None:
    harness.leader.snapshot = harness.snapshot_of(500, *given.topic("orders", 3))
    harness.leader.high_watermark = 500
    harness.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await harness.round()
    while isinstance(harness.leader.requests[-1], FetchSnapshotRequest) or harness.log.end_offset < 500:
        await harness.round()
    assert harness.topics == ["invoices", "orders"]
    assert (harness.log.start_offset, harness.log.end_offset, harness.log.high_watermark) == (500, 502, 502)
    pieces = [one for one in harness.leader.requests if isinstance(one, FetchSnapshotRequest)]
    size_bytes = len(harness.leader.snapshot[1])
    assert [one.topics[0].partitions[0].position for one in pieces] == list(range(0, size_bytes, 100))
    harness.log.close()
    harness.open()
    assert (harness.topics, harness.log.end) == (["orders"], (502, 1))


async def test_a_snapshot_goes_on_after_a_lost_answer(harness: ObserverHarness) -> None:
    harness.leader.snapshot = harness.snapshot_of(500, *given.topic("orders", 3))
    await harness.round(4)
    request = harness.leader.requests[-1]
    harness.leader.answers = [lost()]
    await harness.round(2)
    assert isinstance(request, FetchSnapshotRequest)
    assert harness.leader.requests[-1] == harness.leader.requests[-2]
    while harness.log.end_offset < 500:
        await harness.round()
    assert harness.topics == ["orders"]


async def test_a_damaged_snapshot_is_dropped_and_fetched_again(harness: ObserverHarness) -> None:
    snapshot_id, content = harness.snapshot_of(500, *given.topic("orders", 3))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    harness.leader.snapshot = snapshot_id, bytes(damaged)
    while "cannot be used" not in harness.leadership.problem:
        await harness.round()
    assert (harness.log.end_offset, harness.topics, harness.snapshots_on_disk()) == (0, [], [])
    harness.leader.snapshot = snapshot_id, content
    while harness.log.end_offset < 500:
        await harness.round()
    assert (harness.topics, harness.snapshots_on_disk()) == (["orders"], [snapshot_id])


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        (batch(5, 1, *given.topic("orders")), "the next offset is 0"),
        (batch(0, 2, *given.topic("orders")), "has epoch 2"),
        (batch(0, 1, *given.topic("orders"))[:-1] + b"\xff", ""),
        (b"\x00" * 70, ""),
        (batch(0, 1, *given.topic("orders"))[:40], "without a whole batch"),
    ],
)
async def test_records_that_cannot_be_are_refused_and_leave_no_trace(
    harness: ObserverHarness, records: bytes, problem: str
) -> None:
    await harness.round()
    wrong = harness.leader.answer(harness.leader.requests[-1])
    assert isinstance(wrong, FetchResponse)
    wrong.responses[0].partitions[0].records = records
    harness.leader.answers = [wrong]
    await harness.round()
    assert problem in harness.leadership.problem
    assert harness.leadership.problem
    assert harness.log.end_offset == 0
    harness.leader.write(*given.topic("orders"))
    await harness.round()
    assert harness.topics == ["orders"]


async def test_committed_records_that_contradict_the_image_end_the_broker(harness: ObserverHarness) -> None:
    harness.leader.write(RemoveTopicRecord(topic_id=OTHER_ID))
    with pytest.raises(KafkaError) as error:
        await harness.round(2)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


async def test_a_fault_of_ours_ends_the_broker_instead_of_its_metadata(
    harness: ObserverHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(harness.leadership, "destination", fail)
    harness.observing.start()
    await settled(harness)
    assert [error.message for error in harness.failures] == ["ZeroDivisionError: planted"]


async def settled(harness: ObserverHarness) -> None:
    """Returns once the observer's task has ended."""
    assert harness.observing._task is not None
    await asyncio.wait([harness.observing._task], timeout=10)


async def test_a_truncation_of_what_is_committed_is_refused(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    await harness.round(2)
    harness.leader.log, harness.leader.epoch = [], 2
    harness.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await harness.round(3)
    assert harness.topics == ["orders"]
    assert "committed here" in harness.leadership.problem


async def test_a_log_that_is_cut_back_to_its_snapshot_goes_on_in_the_snapshot_s_epoch(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    await harness.round(2)
    harness.snapshots._begin()
    harness.log.cut(2)
    harness.leader.write(*given.topic("lost", topic_id=OTHER_ID), committed=False)
    await harness.round()
    harness.leader.log, harness.leader.epoch = harness.leader.log[:1], 2
    harness.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await harness.round(4)
    assert harness.topics == ["invoices", "orders"]
    assert harness.log.end == (4, 2)


async def test_a_leader_that_is_silent_is_asked_no_more_than_others(harness: ObserverHarness) -> None:
    harness.leader.write(*given.topic("orders"))
    await harness.round(2)
    harness.clock.advance(3_000)
    harness.leader.answers = [lost()]
    await harness.round()
    assert harness.leadership.leader is None


def fetch_endpoint(node_id: int, location: Location) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=location.host, port=location.port)
