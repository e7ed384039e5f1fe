"""A controller and three brokers on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.clusters.makes import ApacheMake, Make, OdradekMake, write_properties
from bench.clusters.node import ClusterProcess
from bench.figures import MB
from bench.peers.peer import free_port

BROKERS = (1, 2, 3)
CONTROLLER = 100
ASK_AGAIN_S = 0.02
ADMIN_TIMEOUT_S = 60.0
IN_SYNC_TIMEOUT_S = 600.0
"""After an unclean stop, checking ten thousand logs takes minutes on two cores."""

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "log.retention.check.interval.ms": "10000",
    "auto.leader.rebalance.enable": "false",  # the row decides which broker leads, and so which is killed
}
"""Settings of all nodes. All others have Kafka's defaults, on both sides."""

QUICK = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "log.segment.delete.delay.ms": "1000",
}
"""Settings of clusters whose brokers are killed, and whose topics last a round. The session timeout, nine seconds by
default, is part of every failover. The memory of deleted topics serves the next rounds.
"""


class Flavour(NamedTuple):
    """The software of the brokers, and of the controller."""

    name: str
    brokers: Make
    controller: Make

    @property
    def title(self) -> str:
        """The name in the report."""
        if type(self.brokers) is type(self.controller):
            return f"{self.brokers.title}, controller too"
        return f"{self.brokers.title}, controller: {self.controller.title}"


ODRADEK, APACHE = OdradekMake(), ApacheMake()

FLAVOURS = {
    flavour.name: flavour
    for flavour in (
        Flavour("odradek", ODRADEK, APACHE),
        Flavour("kafka", APACHE, APACHE),
        Flavour("odradek-alone", ODRADEK, ODRADEK),
    )
}
"""The clusters that are compared. The first two differ in their brokers alone."""


class TimedOut(Exception):
    """A cluster did not reach a state in time."""


class BenchCluster:
    """The processes of one cluster."""

    def __init__(self, flavour: Flavour, work: Path, settings: Mapping[str, str]) -> None:
        self.flavour = flavour
        self._work = work / flavour.name
        self._settings = {**SETTINGS, **settings}
        self._controller_address = f"127.0.0.1:{free_port()}"
        self.addresses = {broker_id: f"127.0.0.1:{free_port()}" for broker_id in BROKERS}
        self.controller = self._node(flavour.controller, CONTROLLER)
        self.brokers = {broker_id: self._node(flavour.brokers, broker_id) for broker_id in BROKERS}

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(self.addresses.values())

    def data(self, node_id: int) -> Path:
        """Returns the log directory of a node."""
        return self._work / f"data-{node_id}"

    def _node(self, make: Make, node_id: int) -> ClusterProcess:
        is_controller = node_id == CONTROLLER
        name = "controller" if is_controller else f"broker-{node_id}"
        file = self._work / f"{name}.properties"
        return ClusterProcess(
            name, self._work / f"{name}.log", lambda: make.command(file, is_controller=is_controller), make.ready
        )

    def _properties(self, node_id: int) -> dict[str, str]:
        own = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": self._controller_address,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data(node_id)),
            **self._settings,
        }
        if node_id == CONTROLLER:
            return {**own, "process.roles": "controller", "listeners": f"CONTROLLER://{self._controller_address}"}
        return {**own, "listeners": f"PLAINTEXT://{self.addresses[node_id]}"}

    def lay_out(self) -> None:
        """Formats all nodes. Raises Unavailable."""
        self._work.mkdir(parents=True, exist_ok=True)
        for make in (self.flavour.controller, self.flavour.brokers):
            make.prepare()
        for node_id, make in (
            (CONTROLLER, self.flavour.controller),
            *((broker_id, self.flavour.brokers) for broker_id in BROKERS),
        ):
            name = "controller" if node_id == CONTROLLER else f"broker-{node_id}"
            file = write_properties(self._work / f"{name}.properties", self._properties(node_id))
            is_controller = node_id == CONTROLLER
            make.format(file, "--standalone" if is_controller else "--no-initial-controllers")

    def start(self) -> None:
        """Starts all nodes, and waits until all brokers serve. Raises NotRunning."""
        self.controller.start()
        self.controller.wait_until_ready()
        for broker in self.brokers.values():
            broker.start()
        for broker in self.brokers.values():
            broker.wait_until_ready()

    def stop(self) -> list[str]:
        """Stops all nodes: the brokers, then the controller. Returns the nodes that had to be killed because they took
        too long.
        """
        return [node.name for node in self._nodes if not node.stop()]

    def kill(self) -> None:
        """Kills all running nodes."""
        for node in self._nodes:
            node.kill()

    @property
    def _nodes(self) -> list[ClusterProcess]:
        return [*self.brokers.values(), self.controller]

    def cpu_s(self) -> float:
        """Returns the processor time that the brokers have used."""
        return sum(broker.cpu_s() for broker in self.brokers.values())

    def memory(self) -> dict[str, float]:
        """Returns the mean memory of a broker."""
        memories = [broker.memory() for broker in self.brokers.values()]
        return {
            "rss_peak_mb": sum(memory.peak_bytes for memory in memories) / MB / len(memories),
            "private_mb": sum(memory.private_bytes for memory in memories) / MB / len(memories),
        }


def until(description: str, holds: Callable[[], bool], look_s: float = ASK_AGAIN_S) -> None:
    """Waits until a condition holds. Raises TimedOut."""
    deadline = time.monotonic() + IN_SYNC_TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimedOut(f"not within {IN_SYNC_TIMEOUT_S:.0f} s: {description}")
        time.sleep(look_s)
