"""An observer's log and image under a leader that a test plays: what is lost, later, elsewhere, or cannot be."""

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
from broker.peers.settings import Settings
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
from tests.broker.metadata.quorums import FakeLeader, Threads, batch, lost
from tests.broker.metadata.worlds import HandWorker
from tests.broker.peers.scripted import ManualClock
from tests.coordinator.cluster import given

HERE, THERE = Location("a", 9093), Location("b", 9093)
OTHER_ID = b"another-topic's-"


class World:
    """One observer, opened on a directory over and over, and the controllers that it finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = OsDisk()
        self.clock = ManualClock()
        self.leader = FakeLeader()
        self.found = {HERE: self.leader}
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
        self.leadership = Leadership(read_quorum_state(self.disk, self.log.directory), {}, tuple(self.found))
        self.controllers = Controllers(self.leadership, Settings(), self.clock, lambda: 0.5)
        self.controllers._peers = self.found  # type: ignore[assignment]  # played by the test
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
        """As a leader has it."""
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
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_what_is_committed_is_in_the_image_and_the_rest_in_the_log(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    world.leader.write(*given.topic("invoices", topic_id=OTHER_ID), committed=False)
    await world.round(2)
    assert world.topics == ["orders"]
    assert (world.log.high_watermark, world.log.end_offset, world.loader.image.offset) == (2, 4, 1)
    world.leader.high_watermark = 4
    await world.round()
    assert world.topics == ["invoices", "orders"]
    assert world.observing.is_current


async def test_a_high_watermark_beyond_the_log_is_taken_as_far_as_there_are_records(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    world.leader.high_watermark = (1 << 63) - 1
    await world.round(2)
    assert (world.log.high_watermark, world.topics) == (2, ["orders"])
    assert not world.observing.is_current


async def test_a_high_watermark_never_goes_back(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    await world.round(2)
    for told in (0, -1, -(1 << 63)):
        world.leader.high_watermark = told
        await world.round()
    assert (world.log.high_watermark, world.topics) == (2, ["orders"])


async def test_a_lost_answer_costs_a_round(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    world.leader.answers = [lost(), lost()]
    await world.round(4)
    assert world.topics == ["orders"]


async def test_a_restart_goes_on_where_the_log_ends(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    await world.round(2)
    world.log.close()
    world.open()
    assert world.topics == []
    world.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await world.round()
    assert world.topics == ["invoices", "orders"]
    assert read_quorum_state(world.disk, world.log.directory) == QuorumState(100, 1)


async def test_a_new_leader_is_found_and_what_the_old_one_had_not_committed_goes(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    world.leader.write(*given.topic("lost", topic_id=OTHER_ID), committed=False)
    await world.round(2)
    successor = FakeLeader(101, epoch=2)
    successor.log = world.leader.log[:1]
    successor.high_watermark = 2
    successor.write(*given.topic("invoices", topic_id=OTHER_ID))
    world.found[THERE] = successor
    world.leadership.locate([fetch_endpoint(101, THERE)])
    world.leader.answers = [lost()]
    world.leader.leader_id = world.leader.epoch = -1
    await world.round(6)
    assert world.topics == ["invoices", "orders"]
    assert (world.log.end_offset, world.leadership.state) == (4, QuorumState(101, 2))
    assert world.failures == []


async def test_an_observer_far_behind_begins_with_the_leader_s_snapshot(world: World) -> None:
    world.leader.snapshot = world.snapshot_of(500, *given.topic("orders", 3))
    world.leader.high_watermark = 500
    world.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await world.round()
    while isinstance(world.leader.asked[-1], FetchSnapshotRequest) or world.log.end_offset < 500:
        await world.round()
    assert world.topics == ["invoices", "orders"]
    assert (world.log.start_offset, world.log.end_offset, world.log.high_watermark) == (500, 502, 502)
    pieces = [one for one in world.leader.asked if isinstance(one, FetchSnapshotRequest)]
    size_bytes = len(world.leader.snapshot[1])
    assert [one.topics[0].partitions[0].position for one in pieces] == list(range(0, size_bytes, 100))
    world.log.close()
    world.open()
    assert (world.topics, world.log.end) == (["orders"], (502, 1))


async def test_a_snapshot_goes_on_after_a_lost_answer(world: World) -> None:
    world.leader.snapshot = world.snapshot_of(500, *given.topic("orders", 3))
    await world.round(4)
    asked = world.leader.asked[-1]
    world.leader.answers = [lost()]
    await world.round(2)
    assert isinstance(asked, FetchSnapshotRequest)
    assert world.leader.asked[-1] == world.leader.asked[-2]
    while world.log.end_offset < 500:
        await world.round()
    assert world.topics == ["orders"]


async def test_a_damaged_snapshot_is_dropped_and_fetched_again(world: World) -> None:
    snapshot_id, content = world.snapshot_of(500, *given.topic("orders", 3))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    world.leader.snapshot = snapshot_id, bytes(damaged)
    while "is of no use" not in world.leadership.problem:
        await world.round()
    assert (world.log.end_offset, world.topics, world.snapshots_on_disk()) == (0, [], [])
    world.leader.snapshot = snapshot_id, content
    while world.log.end_offset < 500:
        await world.round()
    assert (world.topics, world.snapshots_on_disk()) == (["orders"], [snapshot_id])


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        (batch(5, 1, *given.topic("orders")), "the next offset is 0"),
        (batch(0, 2, *given.topic("orders")), "is of epoch 2"),
        (batch(0, 1, *given.topic("orders"))[:-1] + b"\xff", ""),
        (b"\x00" * 70, ""),
        (batch(0, 1, *given.topic("orders"))[:40], "without a whole batch"),
    ],
)
async def test_records_that_cannot_be_are_refused_and_leave_no_trace(
    world: World, records: bytes, problem: str
) -> None:
    await world.round()
    wrong = world.leader.answer(world.leader.asked[-1])
    assert isinstance(wrong, FetchResponse)
    wrong.responses[0].partitions[0].records = records
    world.leader.answers = [wrong]
    await world.round()
    assert problem in world.leadership.problem
    assert world.leadership.problem
    assert world.log.end_offset == 0
    world.leader.write(*given.topic("orders"))
    await world.round()
    assert world.topics == ["orders"]


async def test_committed_records_that_contradict_the_image_end_the_broker(world: World) -> None:
    world.leader.write(RemoveTopicRecord(topic_id=OTHER_ID))
    with pytest.raises(KafkaError) as error:
        await world.round(2)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


async def test_a_fault_of_ours_ends_the_broker_instead_of_its_metadata(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(world.leadership, "destination", fail)
    world.observing.start()
    await settled(world)
    assert [error.message for error in world.failures] == ["ZeroDivisionError: planted"]


async def settled(world: World) -> None:
    """The task of the observer has ended."""
    assert world.observing._task is not None
    await asyncio.wait([world.observing._task], timeout=10)


async def test_a_truncation_of_what_is_committed_is_refused(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    await world.round(2)
    world.leader.log, world.leader.epoch = [], 2
    world.leader.write(*given.topic("invoices", topic_id=OTHER_ID))
    await world.round(3)
    assert world.topics == ["orders"]
    assert "is committed here" in world.leadership.problem


async def test_a_leader_that_is_silent_is_asked_no_more_than_others(world: World) -> None:
    world.leader.write(*given.topic("orders"))
    await world.round(2)
    world.clock.advance(3_000)
    world.leader.answers = [lost()]
    await world.round()
    assert world.leadership.leader is None


def fetch_endpoint(node_id: int, location: Location) -> NodeEndpoint:
    return NodeEndpoint(node_id=node_id, host=location.host, port=location.port)
