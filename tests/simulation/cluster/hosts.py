"""The hosts of a cluster: three brokers and their controller, and failures of several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import pytest

from broker.replica import following, replica_fetcher
from broker.replica.partition import Partition
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from tests.simulation.cluster.broker import BrokerNode
from tests.simulation.cluster.clients import Client
from tests.simulation.cluster.controller import ANSWER_WITHIN_S, ControllerNode
from tests.simulation.cluster.processes import PROCESS, ClusterLoop
from tests.simulation.cluster.surroundings import NO_OPTIONS, Surroundings

NODES = (1, 2, 3)

R = TypeVar("R")


class Hosts(Surroundings):
    """All hosts, and the rule that decides which of them may die."""

    def __init__(self, loop: ClusterLoop, options: Mapping[str, str] = NO_OPTIONS) -> None:
        super().__init__(loop, options)
        self.controller = ControllerNode(self)
        self.brokers = {node_id: BrokerNode(self, self.controller, node_id) for node_id in NODES}
        self.unclean: dict[int, bool] = {}
        """Brokers that have died and are not in sync again, each with True if it has lost its power."""

    @property
    def replicas(self) -> dict[int, list[Partition]]:
        """Returns the replicas of all brokers that serve clients, by broker."""
        return {
            node.node_id: [*node.server.broker.replicas]
            for node in self.brokers.values()
            if node.server is not None and node.is_alive
        }

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Checks each change of a high watermark during the block."""
        advance, take = Partition.advance, following.take_watermarks

        def advanced(partition: Partition, now_ms: int) -> None:
            before = partition.high_watermark
            advance(partition, now_ms)
            if partition.high_watermark != before:
                self._has_advanced(partition)

        def taken(partition: Partition, high_watermark: int, log_start_offset: int) -> None:
            before = partition.high_watermark
            take(partition, high_watermark, log_start_offset)
            if partition.high_watermark != before:
                self._has_advanced(partition)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Partition, "advance", advanced)
            patch.setattr(replica_fetcher, "take_watermarks", taken)
            yield

    def _has_advanced(self, partition: Partition) -> None:
        process = PROCESS.get()
        node = next((node for node in self.brokers.values() if node.process is process), None)
        if node is None or not node.is_alive:
            return
        self.history.check_committed(node.node_id, partition)
        if partition.leads:
            name = partition.name
            others = {
                other.node_id: replica
                for other in self.brokers.values()
                if other is not node and other.is_alive and other.server is not None
                if (replica := other.server.broker.replicas.topic(name.topic).get(name.partition)) is not None
            }
            self.history.check_in_sync(node.node_id, partition, others)

    def leader_of(self, name: TopicPartition) -> int:
        registered = self.controller.image.partition(name)
        return -1 if registered is None else registered.leader

    def client(self, name: str) -> Client:
        return Client(self, {node.node_id: node.host for node in self.brokers.values()}, name)

    def living(self) -> list[BrokerNode]:
        return [node for node in self.brokers.values() if node.is_alive]

    def is_back(self, node: BrokerNode) -> bool:
        """True if all replicas of the broker's current process are in sync."""
        image, server = self.controller.image, node.server
        if server is None or not node.is_alive or node.disk.crash_at is not None:
            return False
        registered = image.brokers.get(node.node_id)
        if registered is None or registered.epoch != server.broker.node.broker_epoch:
            return False
        partitions = [partition for topic in image.topics() for partition in topic.partitions.values()]
        return all(node.node_id in one.isr for one in partitions if node.node_id in one.replicas)

    def may_die(self, node: BrokerNode, *, power: bool) -> bool:
        """True if the broker's death can't lose committed records. A broker that dies counts as having lost records
        (KIP-966): all replicas but one of min.insync.replicas may have done so at a time. If no machine loses its
        power, the last known leader has all of its records, and any number of brokers may die."""
        for other in list(self.unclean):
            if self.is_back(self.brokers[other]):
                del self.unclean[other]
        others = [lost_power for other, lost_power in self.unclean.items() if other != node.node_id]
        return not others if power else not any(others)

    def kill(self, node: BrokerNode, *, power: bool) -> None:
        self.history.check(self.replicas)
        self.history.forget_replicas(node.node_id)
        self.history.note("dies", node.node_id, power)
        self.unclean[node.node_id] = power or self.unclean.get(node.node_id, False)
        if power:
            self.history.powerless |= self._held_alone(node)
        node.kill(power=power)

    def _held_alone(self, node: BrokerNode) -> set[TopicPartition]:
        """Returns the partitions with a single replica that is on the broker, or is moving to or from it."""
        return {
            TopicPartition(topic.name, index)
            for topic in self.controller.image.topics()
            for index, partition in topic.partitions.items()
            if node.node_id in partition.replicas and len(partition.replicas) < len(NODES)
        }

    async def ask_controller(self, request: object, response: type[R]) -> R | None:
        """Returns the controller's answer; None without an answer, for example while the controller is stopped."""
        answering = self.controller.process.spawn(self.controller.controller.submit(request, response))
        await asyncio.wait([answering], timeout=ANSWER_WITHIN_S)
        if not answering.done():
            return None
        try:
            return answering.result()
        except KafkaError as error:
            self.history.counts[f"{type(request).__name__} {error.code.name}"] += 1
            return None
