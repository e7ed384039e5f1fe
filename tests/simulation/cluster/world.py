"""Brokers, a controller, clients and a network from one seed: the failures, and the final checks.

All parts of the product are real: whole brokers with their fetchers, coordinators and ISR changes, and our controller.
The network, the disks, the time and the clients are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.types import TopicPartition
from tests.simulation.cluster.clients import consume, list_ends, produce, produce_idempotently
from tests.simulation.cluster.committing import commit_offsets
from tests.simulation.cluster.courses import TOPIC, Course, by_chance
from tests.simulation.cluster.history import Breach, History
from tests.simulation.cluster.lines import listened_to
from tests.simulation.cluster.processes import ClusterLoop, simulate
from tests.simulation.cluster.strikes import ALONE, Strikes
from tests.simulation.cluster.surroundings import NO_OPTIONS

PARTITIONS = 2
REST_S = 30
"""Time within which the cluster must come to rest after the last failure."""


class ClusterWorld(Strikes):
    """One run of the world."""

    rest_s: float = REST_S

    # Its course

    async def run(self, course: Course) -> None:
        """Runs the world without raising; `history.breaches` has the violated invariants."""
        await self._begin()
        watching = asyncio.ensure_future(self._watch())
        await course(self)
        await self._calm()
        watching.cancel()
        if await self._rests():
            self.history.check_end(self.replicas)
        else:
            self.history.breach(Breach.STUCK, self._state())

    async def _begin(self) -> None:
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        while not all(node.server for node in self.brokers.values()):  # noqa: ASYNC110 (they tell nobody)
            await asyncio.sleep(0.05)
        await self._create()
        self._begin_clients()

    async def _create(self) -> None:
        configs = [CreatableTopicConfig(name="min.insync.replicas", value="2")]
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, assignments=[], configs=configs
        )
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[node_id])
            for index, node_id in enumerate(self.brokers)
        ]
        alone = CreatableTopic(
            name=ALONE, num_partitions=-1, replication_factor=-1, assignments=assignments,
            configs=[CreatableTopicConfig(name="min.insync.replicas", value="1")],
        )  # fmt: skip
        await self.controller.controller.submit(
            CreateTopicsRequest(topics=[topic, alone], timeout_ms=1_000), CreateTopicsResponse
        )

    def _begin_clients(self) -> None:
        first, second = (TopicPartition(TOPIC, index) for index in range(PARTITIONS))
        for number, (partition, acks) in enumerate([(first, -1), (first, 1), (second, -1)]):
            client = self.client(f"producer{number}")
            client.process.spawn(produce(client, [partition], acks))
        client = self.client("to one replica")
        client.process.spawn(produce(client, [TopicPartition(ALONE, index) for index in range(len(self.brokers))], -1))
        idempotent = self.client("idempotent")
        idempotent.process.spawn(produce_idempotently(idempotent, second))
        group = self.client("group")
        group.process.spawn(commit_offsets(group, first))
        for number, partition in enumerate((first, second)):
            reader = self.client(f"consumer{number}")
            reader.process.spawn(consume(reader, partition, committed=bool(number)))
            watcher = self.client(f"watcher{number}")
            watcher.process.spawn(list_ends(watcher, partition))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            self.history.check(self.replicas)

    # The end

    async def _calm(self) -> None:
        """Stops causing failures."""
        self.network.is_calm = True
        self.network.heal()
        for node in self.brokers.values():
            node.disk.crash_at = None
            if node.process is not None:
                node.process.go_on()
        self.controller.process.go_on()

    def _raise_the_dead(self) -> None:
        for node in self.brokers.values():
            if not node.is_alive:
                self.history.forget_replicas(node.node_id)
                node.start()

    async def _rests(self) -> bool:
        """True once all replicas are in sync and equal."""
        deadline_s = self.loop.time() + self.rest_s
        while self.loop.time() < deadline_s:
            self._raise_the_dead()  # one may have been on its way to a stop
            await asyncio.sleep(0.3)
            if self._is_whole():
                return True
        return False

    def _is_whole(self) -> bool:
        if len(self.replicas) < len(self.brokers):
            return False
        for node_id, partitions in self.replicas.items():
            for partition in partitions:
                assigned = self.controller.image.partition(partition.name)
                if assigned is None or node_id not in assigned.replicas:
                    return False
        for topic in self.controller.image.topics():
            for index, registered in topic.partitions.items():
                replicas = [
                    node.server.broker.replicas.topic(topic.name).get(index)
                    for node in self.brokers.values()
                    if node.server is not None and node.node_id in registered.replicas
                ]
                if sorted(registered.isr) != sorted(registered.replicas) or len(replicas) < len(registered.replicas):
                    return False
                ends = {
                    None if one is None else (one.high_watermark, one.log_end_offset, one.log_start_offset)
                    for one in replicas
                }
                if len(ends) != 1 or any(end is None or end[0] != end[1] for end in ends):
                    return False
        return True

    def _state(self) -> str:
        lines = []
        for topic in self.controller.image.topics():
            for index, registered in topic.partitions.items():
                lines.append(f"{topic.name}-{index}: {registered[:5]} elr {registered.elr} {registered.last_known_elr}")
                for node in self.brokers.values():
                    if node.server is not None:
                        one = node.server.broker.replicas.topic(topic.name).get(index)
                        lines.append(f"{node.node_id}: {one} {one and (one.high_watermark, one.log_end_offset)}")
                    else:
                        lines.append(f"{node.node_id}: not served, alive {node.is_alive}")
        return "; ".join(lines)


def run_cluster(
    seed: int,
    course: Course = by_chance,
    options: Mapping[str, str] = NO_OPTIONS,
    rest_s: float = REST_S,
    kind: type[ClusterWorld] = ClusterWorld,
) -> History:
    """Runs a cluster with this seed, and returns its history."""

    async def main(loop: ClusterLoop) -> History:
        world = kind(loop, options)
        world.rest_s = rest_s
        with listened_to(world), world.watched():
            await world.run(course)
        return world.history

    return simulate(seed, main)
