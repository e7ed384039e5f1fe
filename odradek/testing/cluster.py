"""A test's own cluster of several brokers."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Unpack

from odradek.testing.aio import AsyncBroker, AsyncControlled, threaded
from odradek.testing.broker import option_text
from odradek.testing.control import Control, JsonObject
from odradek.testing.controlled import ControlledBroker, Isolation
from odradek.testing.errors import BrokerError, ControlError
from odradek.testing.faults import Fault, FaultFields
from odradek.testing.guard import GuardedDirectory
from odradek.testing.lifetime import Lifetime
from odradek.testing.ports import ReservedPort
from odradek.testing.process import START_S, ServerProcess, environment, python, write_properties
from odradek.testing.served import TEST_SETTINGS, ServedBroker
from odradek.testing.views import Group, Record
from odradek.testing.waiting import WAIT_S, wait_until

__tracebackhide__ = True

CONTROLLER_ID: Final = 1
"""The broker whose process is also the controller; a test should not kill it."""

MAX_BROKERS: Final = 9
MAX_REPLICAS: Final = 3
NOT_HERE: Final = 409
FORMAT_S: Final = 60

QUICK: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "4000",  # so that a test doesn't wait nine seconds until a broker is fenced
    "broker.heartbeat.interval.ms": "500",
}
REPLICATED: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
"""Internal topics, by the prefixes of their options."""

FORMAT: Final = """\
import json, sys
sys.path.insert(0, sys.argv[1])
import odradek
sys.path.remove(sys.argv[1])
odradek.add_packages()
from cli.main import main
sys.exit(max(main(["format", *words]) for words in json.loads(sys.argv[2])))
"""
"""Formats the directories of all nodes in one process, which takes as long as for one node."""


class Cluster(ControlledBroker, Lifetime["AsyncCluster"]):
    """Brokers 1 to n, each in its own process, until the end of a `with` block. Topics have three replicas by default.
    Faults and the clock apply to all brokers.

        with Cluster(3) as cluster:
            cluster.create_topic("orders", partitions=6)
            cluster.leader_of("orders", 0).kill()

    `async with Cluster(3) as cluster` gives the same with coroutines (`AsyncCluster`).
    """

    def __init__(self, brokers: int = 3, settings: Mapping[str, str | int | bool] | None = None) -> None:
        """`settings` are options of each broker. Raises ValueError if the number of brokers is not from 1 to 9."""
        super().__init__("", "")
        if not 1 <= brokers <= MAX_BROKERS:
            raise ValueError(f"Cluster({brokers}): a cluster of a test has from 1 to {MAX_BROKERS} brokers")
        self._count = brokers
        self._given = {name: option_text(name, value) for name, value in (settings or {}).items()}
        self._brokers: dict[int, ServedBroker] = {}
        self._home: GuardedDirectory | None = None
        self._ports: list[ReservedPort] = []

    @property
    def aio(self) -> AsyncCluster:
        return AsyncCluster(self)

    @property
    def brokers(self) -> tuple[ServedBroker, ...]:
        """Returns the brokers by their ids, from 1; including stopped brokers."""
        return tuple(self._brokers.values())

    def broker(self, node_id: int) -> ServedBroker:
        """Returns a broker. Raises BrokerError if the cluster has no broker with this id."""
        if node_id not in self._brokers:
            raise BrokerError(f"there is no broker {node_id}; there are {', '.join(map(str, self._brokers)) or 'none'}")
        return self._brokers[node_id]

    @property
    def bootstrap(self) -> str:
        """Returns the addresses of all brokers, for `bootstrap.servers`."""
        if not self._brokers:
            raise BrokerError("the cluster is not started: use `with Cluster(3) as cluster`, or cluster.start()")
        return ",".join(broker.bootstrap for broker in self.brokers)

    # Start and stop

    def start(self, *, timeout_s: float = START_S) -> None:
        """Starts all brokers, and returns once they serve. Raises BrokerError, with the end of a log, if a broker
        doesn't."""
        if self._home is not None:
            raise BrokerError("the cluster is already started")
        self._home = GuardedDirectory()
        try:
            self._ports = [ReservedPort() for _ in range(self._count + 1)]
            servers = {
                node_id: ServerProcess(f"broker-{node_id}", self._home, self._settings(node_id, self._home))
                for node_id in range(1, self._count + 1)
            }
            _format(self._home, servers)
            self._brokers = {node_id: ServedBroker(server) for node_id, server in servers.items()}
            first, *others = self.brokers
            first.serve(timeout_s)
            with ThreadPoolExecutor(MAX_BROKERS) as threads:
                list(threads.map(lambda broker: broker.serve(timeout_s), others))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops all brokers, and removes their directory. May be called again."""
        for broker in self.brokers:
            broker.process.forget()
        if self._home is not None:
            self._home.close()
        for port in self._ports:
            port.release()
        self._home, self._ports, self._brokers = None, [], {}

    def recover(self) -> None:
        """Restarts or resumes all brokers that don't serve, and removes all faults."""
        for broker in self.brokers:
            broker.recover()

    def _settings(self, node_id: int, home: GuardedDirectory) -> dict[str, str]:
        controller, *ports = self._ports
        listeners = f"PLAINTEXT://{ports[node_id - 1].address}"
        roles = "broker"
        if node_id == CONTROLLER_ID:
            listeners, roles = f"{listeners},CONTROLLER://{controller.address}", "broker,controller"
        replicas = min(MAX_REPLICAS, self._count)
        in_sync = max(replicas - 1, 1)
        return {
            **TEST_SETTINGS,
            **QUICK,
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller.address,
            "log.dirs": str(home.path / f"data-{node_id}"),
            "default.replication.factor": str(replicas),
            "min.insync.replicas": str(in_sync),
            **{f"{name}.replication.factor": str(replicas) for name in REPLICATED},
            **{f"{name}.min.isr": str(in_sync) for name in REPLICATED[1:]},
            **self._given,
        }

    # State of all brokers

    def _serving(self) -> list[ServedBroker]:
        serving = [broker for broker in self.brokers if broker.process.is_running and not broker.process.is_paused]
        if not serving:
            raise BrokerError("no broker of the cluster runs")
        return serving

    def _controls(self) -> Sequence[Control]:
        return [broker.control for broker in self._serving()]

    @property
    def control(self) -> Control:
        """Returns the control server of a running broker, which describes the cluster."""
        return self._serving()[0].control

    def leader_of(self, topic: str, partition: int = 0) -> ServedBroker:
        """Returns the broker that leads a partition. Raises BrokerError if it has no leader."""
        return self.broker(self.leader(topic, partition))

    def coordinator_of(self, group: str) -> ServedBroker:
        """Returns the broker that coordinates a group. Raises BrokerError if no broker does yet."""
        for broker in self._serving():
            if _group_at(broker, group) is not None:
                return broker
        raise BrokerError(f"there is no group {group}")

    def group(self, name: str) -> Group | None:
        return next(filter(None, (_group_at(broker, name) for broker in self._serving())), None)

    def partitions(self, topic: str) -> list[JsonObject]:
        """Returns the partitions of a topic, with the offsets of their leaders."""
        return [self._as_led(topic, entry) for entry in super().partitions(topic)]

    def _as_led(self, topic: str, entry: JsonObject) -> JsonObject:
        leader = self._brokers.get(entry["leader"])
        if entry["end_offset"] is not None or leader is None or not leader.process.is_running:
            return entry
        return next((led for led in leader.partitions(topic) if led["partition"] == entry["partition"]), entry)

    def records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int | None = None,
        isolation: Isolation = "read_uncommitted",
        control_records: bool = False,
    ) -> list[Record]:
        """Returns the records of the partitions' leaders."""
        records: list[Record] = []
        for entry in self.partitions(topic):
            number = entry["partition"]
            if partition in (None, number):
                records += self.broker(entry["leader"]).records(
                    topic, partition=number, offset=offset, isolation=isolation, control_records=control_records
                )
        return records

    def wait_for_isr(self, topic: str, replicas: int = MAX_REPLICAS, *, timeout_s: float = WAIT_S) -> None:
        """Waits until each partition of a topic has `replicas` replicas in sync. Raises WaitTimeout."""

        def look() -> bool | None:
            return min(len(entry["isr"]) for entry in self.partitions(topic)) >= replicas or None

        wait_until(look, timeout_s, lambda: f"for {replicas} in sync: {self.partitions(topic)}")

    def fault(self, **fields: Unpack[FaultFields]) -> Fault:
        """Sets a fault on each broker; a fault of leadership only on the controller."""
        if "no_leader" in fields or "move_leader" in fields:
            return self._held(Fault([self.broker(CONTROLLER_ID).control], fields))
        return super().fault(**fields)


class AsyncCluster(AsyncControlled[Cluster]):
    """The methods of a cluster as coroutines."""

    wait_for_isr = threaded(Cluster.wait_for_isr)
    recover = threaded(Cluster.recover)

    @property
    def brokers(self) -> tuple[AsyncBroker, ...]:
        """Returns the brokers by their ids, from 1; including stopped brokers."""
        return tuple(map(AsyncBroker, self.sync.brokers))

    def broker(self, node_id: int) -> AsyncBroker:
        """Returns a broker. Raises BrokerError if the cluster has no broker with this id."""
        return AsyncBroker(self.sync.broker(node_id))

    async def leader_of(self, topic: str, partition: int = 0) -> AsyncBroker:
        """Returns the broker that leads a partition. Raises BrokerError if it has no leader."""
        return AsyncBroker(await asyncio.to_thread(self.sync.leader_of, topic, partition))

    async def coordinator_of(self, group: str) -> AsyncBroker:
        """Returns the broker that coordinates a group. Raises BrokerError if no broker does yet."""
        return AsyncBroker(await asyncio.to_thread(self.sync.coordinator_of, group))


def _group_at(broker: ServedBroker, name: str) -> Group | None:
    """Returns a group if this broker coordinates it."""
    try:
        return broker.group(name)
    except ControlError as error:
        if error.status == NOT_HERE:
            return None
        raise


def _format(home: GuardedDirectory, servers: Mapping[int, ServerProcess]) -> None:
    """Formats the directories of all servers. Raises BrokerError if that fails."""
    cluster_id = f"test-{secrets.token_hex(8)}"
    lines = []
    for node_id, server in servers.items():
        file = home.path / f"format-{node_id}.properties"
        write_properties(file, server.settings)
        lines.append(["-t", cluster_id, "-c", str(file), *(["--standalone"] if node_id == CONTROLLER_ID else [])])
    ended = subprocess.run(
        python(FORMAT, json.dumps(lines)), env=environment(), capture_output=True, timeout=FORMAT_S, check=False
    )
    if ended.returncode:
        raise BrokerError(f"the cluster's directories cannot be formatted: {ended.stderr.decode(errors='replace')}")
