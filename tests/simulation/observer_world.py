"""A broker that observes a quorum of three controllers over a failing network and disk: observer, log and image are
real, the controllers are modelled.

Invariants: what the broker believes to be committed is committed by the quorum, and is never removed, not even for a
leader that lacks it (KAFKA-12460). Once the network works again, the broker finds the leader through any controller,
and gets all committed records (KAFKA-19354).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final, TypeVar

from broker.metadata.controllers import Controllers
from broker.metadata.followed_log import FollowedLog
from broker.metadata.loading import load
from broker.metadata.log import log_config, open_metadata_log
from broker.metadata.observing import Observing, QuorumTimes
from broker.metadata.snapshots import SnapshotRules, Snapshots
from client.errors import PeerUnavailable, RequestTimedOut
from client.settings import Settings
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum_state import read_quorum_state
from coordinator.cluster.record import MetadataBatch
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.observer import FetchLimits, Observer
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchRequest
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from protocol.versions import ANY_VERSION
from tests.coordinator.cluster.test_image_records import everything
from tests.simulation.faulty_disk import Crash, FaultyDisk
from tests.simulation.observer_controllers import IDS, MAJORITY, Controller, Quorum, fetched, has_news, piece
from tests.simulation.virtual_time import InlineWorkers, run, virtual_clock

R = TypeVar("R")

DIRECTORY: Final = "/data"
CONFIG: Final = log_config(segment_bytes=1_500)
RULES: Final = SnapshotRules(
    max_record_bytes=1_000, max_interval_ms=60_000, retention_bytes=3_000, retention_ms=600_000
)
LOOK_S: Final = 0.05
"""Interval at which a controller without news checks for some."""

WHOLE_S: Final = 30
"""Time within which the broker must have everything after the last failure: many times what it needs."""


class SessionWorkers(InlineWorkers):
    """The threads of one process; work of a dead process is not carried out."""

    is_dead = False

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        super().run(lambda: None if self.is_dead else work(), then)


class Link:
    """The broker's connection to the controller at an address: a `Peer` over a network that loses messages."""

    def __init__(self, world: ObserverWorld, location: Location) -> None:
        self._world = world
        self._location = location

    def _node(self) -> Controller | None:
        nodes = self._world.quorum.nodes.values()
        return next((one for one in nodes if one.location == self._location and one.is_up), None)

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        """Sends a request, as `Peer` does. Raises PeerError."""
        world, dice = self._world, self._world.net_dice
        await asyncio.sleep(dice.choice((0.001, 0.005, 0.05)))
        node = self._node()
        if node is None:
            raise PeerUnavailable(str(self._location), "nobody listens")
        if node.node_id in world.cut or dice.random() < world.loss:
            await asyncio.sleep(timeout_ms / 1000)
            raise RequestTimedOut(str(self._location), "lost", sent=True)
        answer = await self._answer(node, request)
        if not node.is_up or node.node_id in world.cut or dice.random() < world.loss:
            raise PeerUnavailable(str(self._location), "the connection was lost", sent=True)
        assert isinstance(answer, response)
        return answer

    async def _answer(self, node: Controller, request: object) -> object:
        if isinstance(request, FetchSnapshotRequest):
            return piece(node, request)
        assert isinstance(request, FetchRequest)
        known_high_watermark = max(request.topics[0].partitions[0].high_watermark, 0)
        left_s = request.max_wait_ms / 1000
        while left_s > 0 and not has_news(node, request, known_high_watermark):
            await asyncio.sleep(LOOK_S)
            left_s -= LOOK_S
        leader = self._world.quorum.nodes.get(node.leader_id)
        return fetched(node, request, None if leader is None else leader.location)


class Links(dict[Location, Link]):
    """The links, one for each address."""

    def __init__(self, world: ObserverWorld) -> None:
        super().__init__()
        self._world = world

    def get(self, location: Location, default: object = None) -> Link:
        return self.setdefault(location, Link(self._world, location))


class ObserverWorld:
    """A run of the world, which is determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.net_dice = Random(seed + 1)
        self.disk = FaultyDisk(Random(seed + 2))
        self.disk.mkdir(DIRECTORY)
        self.clock = virtual_clock()
        self.quorum = Quorum(self.dice)
        self.bootstrap = self.dice.sample(IDS, self.dice.choice((1, 1, 2, 3)))
        """The controllers whose addresses are in the broker's configuration; their addresses don't change."""
        self.cut: set[int] = set()
        self.loss = 0.0
        self.counts: Counter[str] = Counter()
        self.moves = 0
        self.failures: list[KafkaError] = []
        self.highest = 0
        """The session's highest high watermark so far."""

    # The broker

    def open(self) -> None:
        """Opens the broker on the files of the last session, as `broker.metadata.joining` does."""
        workers = self.workers = SessionWorkers()
        disk, clock = self.disk, self.clock
        self.log = open_metadata_log(FollowedLog, DIRECTORY, disk=disk, clock=clock, worker=workers, config=CONFIG)
        self.loader = MetadataLoader(Image("the-cluster"))
        for snapshot_id in self.log.snapshots()[-1:]:
            self.log.begin_at(snapshot_id)
        load(self.loader, self.log, disk)
        self.log.listen(self.loader.commit)
        self.snapshots = Snapshots(self.loader, self.log, RULES, 0, disk=disk, clock=clock, worker=workers)
        self.log.listen(self.snapshots.committed)
        self.log.listen(self.notified)
        addresses = tuple(self.quorum.nodes[node_id].location for node_id in self.bootstrap)
        leadership = Leadership(read_quorum_state(disk, self.log.directory), {}, addresses)
        controllers = Controllers(leadership, Settings(), clock, self.net_dice.random)
        controllers._peers = Links(self)  # type: ignore[assignment]
        observer = Observer("the-cluster", 7, b"directory-seven-", leadership, FetchLimits(snapshot_bytes=300))
        self.observing = Observing(
            observer, self.log, self.loader, self.snapshots, controllers, QuorumTimes(), "CONTROLLER", workers,
            self.failures.append,
        )  # fmt: skip
        self.highest = self.log.high_watermark
        self.check_image()
        self.observing.start()

    def restart(self, *, power: bool) -> None:
        """Kills the process or the machine, and starts the broker on the remaining files."""
        assert self.observing._task is not None
        self.observing._task.cancel()
        self.workers.is_dead = True
        self.disk.crash(power=power)
        self.failures = []
        self.open()
        self.counts["power" if power else "killed"] += 1

    # What must hold

    def notified(self, batch: MetadataBatch) -> None:
        """Checks, as a listener, that each batch is committed."""
        committed = self.quorum.committed.get(batch.base_offset)
        assert committed is not None, f"{batch.base_offset} was reported before it was committed, or is another's"
        assert list(batch.records) == list(committed.records), f"offset {batch.base_offset} is another's record"
        self.counts["notified"] += 1

    def check(self) -> None:
        high_watermark = self.log.high_watermark
        assert high_watermark >= self.highest, "what was committed was taken back"
        self.highest = high_watermark
        task = self.observing._task
        assert task is not None
        if task.done() and (error := task.exception()) is not None:
            if not isinstance(error, Crash):
                raise error
            self.restart(power=self.dice.random() < 0.5 and not self.quorum.replaced)
        elif self.failures:
            (failure,) = self.failures
            assert failure.code is ErrorCode.KAFKA_STORAGE_ERROR, f"the broker gave up: {failure}"
            self.restart(power=False)

    def check_image(self) -> None:
        """Checks that the image is the fold of the committed records, up to its offset."""
        image = self.loader.image
        assert everything(image) == everything(self.quorum.image(image.offset + 1)), "the image is another cluster's"

    # Steps

    async def live(self, steps: int) -> None:
        self.open()
        for _ in range(steps):
            self.step()
            await asyncio.sleep(self.dice.choice((0.01, 0.1, 0.5)))
            self.check()
        await self.become_whole()

    def step(self) -> None:
        """Performs a random event."""
        events = IN_TROUBLE if self.quorum.replaced else EVENTS
        name = self.dice.choices([*events], [chance for chance, _ in events.values()])[0]
        events[name][1](self)
        self.counts[name] += 1

    def write(self) -> None:
        for _ in range(self.dice.randint(1, 4)):
            self.quorum.append(self.quorum.leader)

    def replicate(self) -> None:
        if self.quorum.leader.is_up:
            self.quorum.replicate(self.dice.sample(IDS, self.dice.randint(0, len(IDS))))

    def elect(self) -> None:
        up = [node_id for node_id, node in self.quorum.nodes.items() if node.is_up]
        if len(up) >= MAJORITY:
            self.quorum.elect(self.dice.sample(up, self.dice.randint(MAJORITY, len(up))))

    def linger(self) -> None:
        """Lets former leaders append records that will never be committed."""
        for node in self.quorum.nodes.values():
            if node.leads and node is not self.quorum.leader:
                self.quorum.append(node)
                self.counts["zombie"] += 1

    def clean(self) -> None:
        self.quorum.clean(self.quorum.nodes[self.dice.choice(IDS)])
        self.snapshots.maintain()

    def stop_or_start(self) -> None:
        """Stops a controller, or starts it, perhaps with another address; a majority always runs."""
        node = self.quorum.nodes[self.dice.choice(IDS)]
        others = [one for one in self.quorum.nodes.values() if one is not node and one.is_up]
        if node.is_up and len(others) >= MAJORITY:
            node.is_up = False
            if node.leads:
                node.leader_id = -1
                self.quorum.elect([one.node_id for one in others])
        elif not node.is_up:
            node.is_up = True
            if node.node_id not in self.bootstrap:
                self.moves += 1
                node.location = Location(f"c{node.node_id}-{self.moves}", 9093)

    def cut_or_heal(self) -> None:
        self.cut = set(self.dice.sample(IDS, self.dice.choice((0, 0, 1, 2, 3))))
        self.loss = self.dice.choice((0.0, 0.05, 0.3))

    def die(self) -> None:
        self.restart(power=self.dice.random() < 0.5)

    def fail_soon(self) -> None:
        """Kills the process within one of its next calls on a file."""
        self.disk.crash_at = self.disk.calls + self.dice.randint(1, 30)

    def back_up(self) -> None:
        self.quorum.back_up()

    def lose_disks(self) -> None:
        """Restores a majority from a backup that lacks records that this broker knows to be committed. Not while the
        broker may die, because a broker that starts knows only its snapshot to be committed."""
        if self.quorum.backup_end < self.log.high_watermark and self.disk.crash_at is None:
            self.quorum.restore_backup()
            self.counts["disks lost"] += 1

    def find_disks(self) -> None:
        self.quorum.bring_back()

    async def become_whole(self) -> None:
        """Ends all failures, and checks that the broker soon has everything."""
        if self.quorum.replaced:
            self.quorum.bring_back()
        self.cut, self.loss, self.disk.crash_at = set(), 0.0, None
        for node in self.quorum.nodes.values():
            node.is_up = True
        self.quorum.elect(IDS)
        self.quorum.replicate(IDS)
        left_s: float = WHOLE_S
        while self.log.high_watermark < self.quorum.high_watermark or not self.observing.is_current:
            assert left_s > 0, f"the broker does not find the leader: {self.observing._leadership.problem}"
            await asyncio.sleep(LOOK_S)
            left_s -= LOOK_S
            self.check()
        self.check_image()
        await self.observing.stop()


Event = Callable[[ObserverWorld], None]

EVENTS: Final[dict[str, tuple[int, Event]]] = {
    "write": (30, ObserverWorld.write),
    "replicate": (30, ObserverWorld.replicate),
    "elect": (6, ObserverWorld.elect),
    "linger": (6, ObserverWorld.linger),
    "clean": (3, ObserverWorld.clean),
    "stop or start": (6, ObserverWorld.stop_or_start),
    "cut or heal": (8, ObserverWorld.cut_or_heal),
    "die": (3, ObserverWorld.die),
    "fail soon": (2, ObserverWorld.fail_soon),
    "back up": (3, ObserverWorld.back_up),
    "lose disks": (2, ObserverWorld.lose_disks),
}
"""The events, and their relative frequencies."""

IN_TROUBLE: Final[dict[str, tuple[int, Event]]] = {
    "write": (10, ObserverWorld.write),
    "replicate": (10, ObserverWorld.replicate),
    "cut or heal": (3, ObserverWorld.cut_or_heal),
    "find disks": (2, ObserverWorld.find_disks),
}
"""The events while a majority has the disks of a backup."""


def simulate(seed: int, steps: int) -> ObserverWorld:
    """Simulates this number of steps and the time after them, and returns the world."""
    world = ObserverWorld(seed)
    run(lambda: world.live(steps))
    return world
