"""Brokers, a controller, clients and a network, all from one seed: what goes wrong, and how it ends.

Everything that is the product's is real: whole brokers with their fetchers, coordinators and changes of in-sync
replicas, and our controller. The network, the disks, time, and the clients are the world's.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from broker.logging import Logger
from broker.replica.partition import Partition
from protocol.errors import KafkaError
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.types import TopicPartition
from tests.simulation.cluster.broker import BrokerNode
from tests.simulation.cluster.clients import Client, consume, list_ends, produce, produce_idempotently
from tests.simulation.cluster.controller import HOST, ControllerNode
from tests.simulation.cluster.history import Breach, History
from tests.simulation.cluster.processes import PROCESS, ClusterLoop, simulate
from tests.simulation.cluster.surroundings import NO_OPTIONS, Surroundings

NODES = (1, 2, 3)
TOPIC = "orders"
PARTITIONS = 2
ROUNDS = 12
ROUND_S = 0.8
REST_S = 30
"""How long the cluster may take to come to rest, once faults have ended."""


class ClusterWorld(Surroundings):
    """One run."""

    def __init__(self, loop: ClusterLoop, options: Mapping[str, str] = NO_OPTIONS) -> None:
        super().__init__(loop, options)
        self.controller = ControllerNode(self)
        self.brokers = {node_id: BrokerNode(self, self.controller, node_id) for node_id in NODES}
        self._unclean: dict[int, bool] = {}
        """Brokers that have died and are not in sync again, each with whether it has lost its power."""

    @property
    def replicas(self) -> dict[int, list[Partition]]:
        """Those of all brokers that serve clients, by broker."""
        return {
            node.node_id: [*node.server.broker.replicas]
            for node in self.brokers.values()
            if node.server is not None and node.is_alive
        }

    # Its course

    async def run(self) -> None:
        """Raises nothing: `history.breaches` has what was wrong."""
        self.controller.start()
        for node in self.brokers.values():
            node.start()
        while not all(node.server for node in self.brokers.values()):  # noqa: ASYNC110 (they tell nobody)
            await asyncio.sleep(0.05)
        await self._create()
        self._begin_clients()
        watching = asyncio.ensure_future(self._watch())
        for _ in range(ROUNDS):
            await asyncio.sleep(self.dice.expovariate(1 / ROUND_S))
            await self.strike()
        await self._calm()
        watching.cancel()
        if await self._rests():
            self.history.check_end(self.replicas)
        else:
            self.history.breach(Breach.STUCK, self._state())

    async def _create(self) -> None:
        configs = [CreatableTopicConfig(name="min.insync.replicas", value="2")]
        topic = CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=3, assignments=[], configs=configs
        )
        await self.controller.controller.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=1_000))

    def _client(self, name: str) -> Client:
        return Client(self, {node.node_id: node.host for node in self.brokers.values()}, name)

    def _begin_clients(self) -> None:
        first, second = (TopicPartition(TOPIC, index) for index in range(PARTITIONS))
        for number, (partition, acks) in enumerate([(first, -1), (first, 1), (second, -1)]):
            client = self._client(f"producer{number}")
            client.process.spawn(produce(client, partition, acks))
        idempotent = self._client("idempotent")
        idempotent.process.spawn(produce_idempotently(idempotent, second))
        for number, partition in enumerate((first, second)):
            reader = self._client(f"consumer{number}")
            reader.process.spawn(consume(reader, partition, committed=bool(number)))
            watcher = self._client(f"watcher{number}")
            watcher.process.spawn(list_ends(watcher, partition))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            self.history.check(self.replicas)

    # Faults

    async def strike(self) -> None:
        """Something goes wrong, or is mended."""
        kind = self.dice.choices(KINDS, WEIGHTS)[0]
        self.history.note("strike", kind)
        self.history.counts[kind] += 1
        await getattr(self, f"_{kind}")()

    def _living(self) -> list[BrokerNode]:
        return [node for node in self.brokers.values() if node.is_alive]

    async def _kill(self) -> None:
        living = [node for node in self._living() if self._may_die(node, power=False)]
        if living:
            self._kill_one(self.dice.choice(living), power=False)

    async def _lose_power(self) -> None:
        living = [node for node in self._living() if self._may_die(node, power=True)]
        if living:
            self._kill_one(self.dice.choice(living), power=True)

    def _kill_one(self, node: BrokerNode, *, power: bool) -> None:
        self.history.check(self.replicas)
        self.history.forget_replicas(node.node_id)
        self.history.note("dies", node.node_id, power)
        self._unclean[node.node_id] = power or self._unclean.get(node.node_id, False)
        node.kill(power=power)

    def _is_back(self, node: BrokerNode) -> bool:
        """Whether its process of now is in sync with everything."""
        image, server = self.controller.image, node.server
        if server is None or not node.is_alive or node.disk.crash_at is not None:
            return False
        registered = image.brokers.get(node.node_id)
        if registered is None or registered.epoch != server.broker.node.broker_epoch:
            return False
        partitions = [partition for topic in image.topics() for partition in topic.partitions.values()]
        return all(node.node_id in one.isr for one in partitions if node.node_id in one.replicas)

    def _may_die(self, node: BrokerNode, *, power: bool) -> bool:
        """Whether nothing may be lost by it. Who dies is taken for one that has lost records (KIP-966): of those that
        min.insync.replicas has, all but one may be so at a time. If nobody loses power, the last known leader has all
        that it had, and any number may die."""
        for other in list(self._unclean):
            if self._is_back(self.brokers[other]):
                del self._unclean[other]
        others = [lost_power for other, lost_power in self._unclean.items() if other != node.node_id]
        return not others if power else not any(others)

    async def _kill_in_a_call(self) -> None:
        living = [node for node in self._living() if self._may_die(node, power=False)]
        if living:
            node = self.dice.choice(living)
            self._unclean.setdefault(node.node_id, False)
            self.history.forget_replicas(node.node_id)
            node.disk.crash_at = node.disk.calls + self.dice.randint(1, 30)

    async def _restart(self) -> None:
        dead = [node for node in self.brokers.values() if not node.is_alive]
        if dead:
            node = self.dice.choice(dead)
            self.history.forget_replicas(node.node_id)
            node.start()

    async def _bounce(self) -> None:
        """A process that dies is back before anybody has noticed."""
        living = [node for node in self._living() if self._may_die(node, power=False)]
        if living:
            node = self.dice.choice(living)
            self._kill_one(node, power=self._may_die(node, power=True) and self.dice.random() < 0.5)
            node.start()

    async def _stop(self) -> None:
        living = [node for node in self._living() if node.server is not None]
        if living:
            node = self.dice.choice(living)
            self.history.forget_replicas(node.node_id)
            self.loop.create_task(node.stop())

    async def _cut(self) -> None:
        """One host is cut off from some others, in one direction or both."""
        hosts = [HOST, *(node.host for node in self.brokers.values())]
        one = self.dice.choice([node.host for node in self.brokers.values()])
        for other in self.dice.sample(hosts, self.dice.randint(1, len(hosts))):
            if other != one:
                self.network.cut(one, other)
                if self.dice.random() < 0.6:
                    self.network.cut(other, one)

    async def _heal(self) -> None:
        self.network.heal()

    async def _lose_connection(self) -> None:
        self.network.lose_one()

    async def _elect(self) -> None:
        """The preferred replicas are to lead again."""
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1_000)
        await self._ask_controller("elect_leaders", request)

    async def _kill_controller(self) -> None:
        self.controller.process.die()
        self.controller.start()

    async def _ask_controller(self, name: str, request: object) -> Any:
        try:
            return await self.controller.answer(name, (request,))
        except KafkaError as error:
            self.history.counts[f"{name} {error.code.name}"] += 1
            return None

    # The end

    async def _calm(self) -> None:
        """No more goes wrong."""
        self.network.is_calm = True
        self.network.heal()
        for node in self.brokers.values():
            node.disk.crash_at = None

    def _raise_the_dead(self) -> None:
        for node in self.brokers.values():
            if not node.is_alive:
                self.history.forget_replicas(node.node_id)
                node.start()

    async def _rests(self) -> bool:
        """True once all replicas are in sync and have the same."""
        deadline_s = self.loop.time() + REST_S
        while self.loop.time() < deadline_s:
            self._raise_the_dead()  # one may have been on its way to a stop
            await asyncio.sleep(0.3)
            if self._is_whole():
                return True
        return False

    def _is_whole(self) -> bool:
        if len(self.replicas) < len(self.brokers):
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
                    None if one is None else (one.high_watermark, one.log_end_offset, one.log_end_offset)
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


KINDS = (
    "kill", "lose_power", "kill_in_a_call", "restart", "bounce", "stop", "cut", "heal", "lose_connection", "elect",
    "kill_controller",
)  # fmt: skip
WEIGHTS = (6, 6, 4, 16, 4, 4, 10, 10, 4, 6, 2)


class Lines:
    """The lines that brokers log: a part of the trace, and their faults."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world

    def debug(self, event: str, **fields: object) -> None: ...

    def info(self, event: str, **fields: object) -> None:
        process = PROCESS.get()
        self._world.history.note(process.host if process else "", event, *map(str, fields.values()))

    warning = info

    def error(self, event: str, exc_info: BaseException | None = None, **fields: object) -> None:
        self.info(event, **fields)
        process = PROCESS.get()
        if exc_info is not None and not (process is not None and process.is_dead):
            self._world.fault(exc_info)

    critical = error

    def exception(self, event: str, **fields: object) -> None:
        self.error(event, exc_info=sys.exc_info()[1], **fields)


@contextmanager
def listened_to(world: ClusterWorld) -> Iterator[None]:
    """Lines come to the world, inside of this."""
    logger, lines = Logger._logger, Lines(world)
    Logger._logger = lambda _: lines  # type: ignore[method-assign, assignment, return-value]
    try:
        yield
    finally:
        Logger._logger = logger  # type: ignore[method-assign]


def run_cluster(seed: int, options: Mapping[str, str] = NO_OPTIONS) -> History:
    """Runs a cluster of this seed, and returns its history."""

    async def main(loop: ClusterLoop) -> History:
        world = ClusterWorld(loop, options)
        with listened_to(world):
            await world.run()
        return world.history

    return simulate(seed, main)
