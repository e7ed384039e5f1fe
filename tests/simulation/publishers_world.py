"""Brokers that publish a cluster's metadata in ZooKeeper, while sessions end, and each broker lags in its own way.

The metadata are a list of batches, committed one after the other. A broker fetches committed batches after a short
delay, and sometimes after a long one. ZooKeeper is a dictionary, which checks its content after each multi.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar, cast

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from programs.zookeeper import znodes
from programs.zookeeper.active import Active
from programs.zookeeper.carrying_out import Hands
from programs.zookeeper.client import ZookeeperClient
from programs.zookeeper.election import ControllerElection
from programs.zookeeper.facade import Facade, FollowedControllers
from programs.zookeeper.inputs import NewTopic
from programs.zookeeper.operations import Operation
from programs.zookeeper.registration import Registration
from programs.zookeeper.session import ZookeeperSession
from protocol.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from tests.coordinator.cluster import given
from tests.programs.zookeeper.ensemble import Ensemble, MemoryClient
from tests.simulation.virtual_time import virtual_clock

BROKERS = (1, 2, 3)
BATCHES = 40
SLOW_S, STALLED_S, PAUSE_S = 0.05, 3.0, 0.4
"""The usual delay of a message, the delay of one message in twenty, and the longest pause between two changes."""

T = TypeVar("T")


class Watched(Ensemble):
    """An ensemble that checks each topic: it is created once, deleted once, and its leader epochs never go back."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._seen: dict[str, int] = {}
        """The leader epoch of each published topic, by path."""
        self._gone: set[str] = set()

    def change(self, operations: Sequence[Operation], owner: int = 0) -> None:
        super().change(operations, owner)
        states = {path: self.json(path)["leader_epoch"] for path in self.nodes if path.endswith("/state")}
        for path, epoch in states.items():
            if path in self._gone:
                self.problems.append(f"{path} is back")
            if epoch < self._seen.get(path, 0):
                self.problems.append(f"{path} goes back to epoch {epoch}")
        self._gone |= self._seen.keys() - states.keys()
        self.counts["removed"] = len(self._gone)
        self._seen = states


class NoTools(Hands):
    """A replacement for tools: it writes no inputs."""

    def __init__(self) -> None:
        pass

    async def create(self, topic: NewTopic) -> bool:
        return False  # a topic that another broker has not shown whole yet


class SlowSession:
    """A session whose work takes time."""

    def __init__(self, ensemble: Ensemble, number: int, random: Random) -> None:
        self._random = random
        self.tell: Callable[[str | None], None] = lambda _: None
        self._loop = asyncio.get_running_loop()
        self.client = MemoryClient(ensemble, number, self._later)

    def _later(self, path: str | None) -> None:
        self._loop.call_soon(self.tell, path)

    @property
    def connected(self) -> bool:
        return self.client.connected

    async def call(self, work: Callable[[ZookeeperClient], T]) -> T:
        await asyncio.sleep(self._random.uniform(0, SLOW_S))
        result = work(self.client)
        await asyncio.sleep(self._random.uniform(0, SLOW_S))
        return result


class Publisher:
    """A broker: its image, how far the image is, and its part in ZooKeeper."""

    def __init__(self, world: PublishersWorld, broker_id: int) -> None:
        self._world = world
        self.image = given.image()
        self._loader = MetadataLoader(self.image)
        self._position = 0
        self._as_of_ms = -1
        self.session = SlowSession(world.ensemble, broker_id, world.random)
        registration = Registration(broker_id, [Endpoint("PLAINTEXT", "here", 9000 + broker_id, 0)], None, 2)
        self.facade = Facade(
            cast(ZookeeperSession, self.session),
            registration,
            ControllerElection(broker_id),
            Active(self.image, NoTools()),
            world.clock,
            "the-cluster",
            FollowedControllers(lambda: True, lambda: self._as_of_ms),
        )
        self.session.tell = self.facade.znode_changed
        self._loader.subscribe(self.facade.changed)
        self.facade.begin()

    async def follow(self) -> None:
        """Fetches committed batches repeatedly."""
        while True:
            sent_ms = self._world.clock.monotonic_ms()
            await self._world.travel()
            committed = len(self._world.committed)
            await self._world.travel()
            for batch in self._world.committed[self._position : committed]:
                self._loader.commit(batch)
            self._position, self._as_of_ms = committed, sent_ms


class PublishersWorld:
    """A run of the world."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = virtual_clock()
        self.ensemble = Watched()
        self.committed: list[MetadataBatch] = []
        self._topics: list[bytes] = []
        self._publishers: list[Publisher] = []

    async def travel(self) -> None:
        """Waits for the delay of a message."""
        longest_s = STALLED_S if self.random.random() < 0.05 else SLOW_S
        await asyncio.sleep(self.random.uniform(0, longest_s))

    async def run(self) -> None:
        """Changes the metadata while sessions end, and checks the published znodes at the end."""
        self._publishers = [Publisher(self, broker_id) for broker_id in BROKERS]
        following = [asyncio.create_task(one.follow()) for one in self._publishers]
        for number in range(BATCHES):
            self._commit(self._change(number))
            await asyncio.sleep(self.random.uniform(0, PAUSE_S))
            if self.random.random() < 0.3:
                self._end_a_session()
        async with asyncio.timeout(120):
            while not self._is_shown():  # noqa: ASYNC110 (time is virtual)
                await asyncio.sleep(1)
        for task in following:
            task.cancel()
        for publisher in self._publishers:
            await publisher.facade.end()
        assert not self.ensemble.problems, self.ensemble.problems

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        base = self.committed[-1].next_offset if self.committed else 0
        self.committed.append(MetadataBatch(base, base + len(records) - 1, 1, 0, 0, records))

    def _change(self, number: int) -> Sequence[MetadataRecord]:
        kind = self.random.choice(("create", "create", "remove", "lead", "lead")) if self._topics else "create"
        self.ensemble.counts[kind] += 1
        if kind == "create":
            self._topics.append(number.to_bytes(16))
            return given.topic(f"t{number}", topic_id=self._topics[-1])
        topic_id = self.random.choice(self._topics)
        if kind == "remove":
            self._topics.remove(topic_id)
            return [RemoveTopicRecord(topic_id=topic_id)]
        return [PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=given.NODE)]

    def _end_a_session(self) -> None:
        """Ends a session, often the active broker's, so that another broker becomes active."""
        active = self.ensemble.nodes.get(znodes.CONTROLLER)
        owners = [
            one for one in self._publishers if active is not None and active.owner == one.session.client.session_id
        ]
        self.ensemble.counts["session ended"] += 1
        self.random.choice(owners or self._publishers).session.client.renew()

    def _is_shown(self) -> bool:
        topics = {f"t{int.from_bytes(one)}" for one in self._topics}
        states = {znodes.state_path(name, 0) for name in topics}
        return topics == set(self.ensemble.below(znodes.TOPICS)) and states <= self.ensemble.nodes.keys()
