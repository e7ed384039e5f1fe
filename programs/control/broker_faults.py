"""Faults of the broker itself, not of requests: they start when they are set, and end when they are removed."""

from __future__ import annotations

from typing import Protocol

from broker.dispatch.broker import Broker
from coordinator.cluster.controller import ActiveController
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration, Topic
from programs.control.fault import InjectedFault
from programs.control.full_disk import FullableDisk
from programs.control.http import RequestError
from protocol.metadata_records.topics import PartitionChangeRecord


class BrokerFault(Protocol):
    """A fault of the broker itself."""

    async def begin(self, fault: InjectedFault) -> None:
        """Starts the fault. Raises RequestError."""
        ...

    async def end(self) -> None:
        """Ends the fault."""
        ...


class DiskFull:
    """A disk without room for records."""

    def __init__(self, disk: FullableDisk) -> None:
        self._disk = disk

    async def begin(self, fault: InjectedFault) -> None:
        if self._disk.on_refused is not None:
            raise RequestError(409, "another fault already fills the disk")

        def refuse() -> None:
            fault.fired += 1

        self._disk.on_refused = refuse

    async def end(self) -> None:
        self._disk.on_refused = None


class LeaderChange:
    """Another leader of a partition, or none, in the metadata, which all clients and brokers see."""

    def __init__(self, broker: Broker, topic: str, partition: int, leader: int) -> None:
        self._broker = broker
        self._name = topic
        self._index = partition
        self._leader = leader
        self._before = NO_LEADER

    async def begin(self, fault: InjectedFault) -> None:
        controller = self._controller()
        topic, partition = self._partition()
        self._before = partition.leader
        if self._leader != NO_LEADER and self._leader not in partition.isr:
            raise RequestError(409, f"broker {self._leader} is not in the ISR of {self}, {list(partition.isr)}")
        if self._leader != self._before:
            await self._lead(controller, topic, self._leader)
            fault.fired += 1

    async def end(self) -> None:
        """Restores the former leader, unless the cluster has elected another one meanwhile."""
        topic = self._broker.image.topic(self._name)
        partition = None if topic is None else topic.partitions.get(self._index)
        if topic is None or partition is None or partition.leader != self._leader or self._before == self._leader:
            return
        if self._before in partition.isr and self._broker.image.is_active(self._before):
            await self._lead(self._controller(), topic, self._before)

    async def _lead(self, controller: ActiveController, topic: Topic, leader: int) -> None:
        record = PartitionChangeRecord(partition_id=self._index, topic_id=topic.topic_id, leader=leader)
        await controller.write([record])

    def _controller(self) -> ActiveController:
        controller = self._broker.controller.active
        if controller is None:
            raise RequestError(
                409, "only the controller changes leaders, and it runs in another process: send the fault there"
            )
        return controller

    def _partition(self) -> tuple[Topic, PartitionRegistration]:
        topic = self._broker.image.topic(self._name)
        partition = None if topic is None else topic.partitions.get(self._index)
        if topic is None or partition is None:
            raise RequestError(404, f"there is no partition {self}")
        return topic, partition

    def __str__(self) -> str:
        return f"{self._name}-{self._index}"
