"""A cluster with brokers of both kinds and controllers of either: its nodes, the operator's requests, and the
comparison of replicas."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop import jvm
from tests.interop.either_node import EitherNode, Make
from tests.interop.load import RECONNECT
from tests.interop.network import Network
from tests.interop.processes import free_port
from tests.interop.quorum import CONTROLLER_ID, ONE_OF_EACH
from tests.interop.several_controllers import DIRECTORIES
from tests.waiting import eventually

SOON_S = 180
SESSION_MS = 6_000

COMMON = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PEERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": str(SESSION_MS),
}

OF_THREE = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    "leader.imbalance.check.interval.seconds": "5",
}

CALM: dict[str, Any] = {"broker__session__timeout__ms": "20000", "replica__lag__time__max__ms": "15000"}
"""Settings of a cluster without planned deaths, in which a slow node on a busy machine doesn't count as dead."""


class Cluster:
    """Brokers 1 … n of these kinds, and their controllers, with a network between them."""

    def __init__(
        self,
        folder: Path,
        makes: Sequence[Make],
        controller: Make = Make.APACHE,
        *other_controllers: Make,
        format_with: Sequence[str] = (),
        disks: int = 1,
        **settings: str,
    ) -> None:
        """`format_with` are arguments for formatting the controllers' directories, which begin the cluster's metadata.
        `disks` is the first broker's number of disks. `settings` apply to all nodes, with `__` for each dot."""
        self.folder = folder
        self._format_with = format_with
        self._disks = {1: disks}
        self.network = Network(folder, self._processes)
        self.assignments: dict[str, Sequence[Sequence[int]]] = {}
        """The replicas of the topics that were created here, by partition."""
        self._common = {**ONE_OF_EACH, **OF_THREE, **COMMON, **dotted(settings)}
        self.controllers = self._make_controllers((controller, *other_controllers))
        self.members = {node_id: self._make_broker(node_id, make) for node_id, make in enumerate(makes, start=1)}

    def _make_controllers(self, makes: Sequence[Make]) -> list[EitherNode]:
        listening = {CONTROLLER_ID + number: f"127.0.0.1:{free_port()}" for number in range(len(makes))}
        reached = {node_id: self.network.before(node_id, address) for node_id, address in listening.items()}
        self._common["controller.quorum.bootstrap.servers"] = ",".join(reached.values())
        directories = zip(reached.items(), DIRECTORIES.values(), strict=False)
        voters = ",".join(f"{node_id}@{address}:{directory}" for (node_id, address), directory in directories)
        controllers = []
        for (node_id, address), make in zip(listening.items(), makes, strict=True):
            own = {
                "process.roles": "controller",
                "node.id": str(node_id),
                "listeners": f"CONTROLLER://{address}",
                "advertised.listeners": f"CONTROLLER://{reached[node_id]}",
            }
            format_with = ("--initial-controllers", voters, *self._format_with)
            controllers.append(EitherNode(self.folder, make, {**self._common, **own}, *format_with))
        return controllers

    def _make_broker(self, node_id: int, make: Make) -> EitherNode:
        clients, peers = (f"127.0.0.1:{free_port()}" for _ in range(2))
        own = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "broker.rack": f"rack-{node_id}",
            "listeners": f"PLAINTEXT://{clients},PEERS://{peers}",
            "advertised.listeners": f"PLAINTEXT://{clients},PEERS://{self.network.before(node_id, peers)}",
            "inter.broker.listener.name": "PEERS",
        }
        disks = self._disks.get(node_id, 1)
        return EitherNode(self.folder, make, {**self._common, **own}, "--no-initial-controllers", disks=disks)

    @property
    def nodes(self) -> list[EitherNode]:
        """Returns the brokers and their controllers."""
        return [*self.members.values(), *self.controllers]

    def _processes(self) -> dict[int, int]:
        return {node.node_id: node.pid for node in self.nodes if node.is_running}

    def start(self) -> None:
        with ThreadPoolExecutor(len(self.controllers)) as threads:  # the first is ready only once a majority runs
            list(threads.map(EitherNode.start, self.controllers))
        for node in self.members.values():
            node.start()

    def forget(self) -> None:
        """Ends all processes."""
        self.network.close()
        for node in self.nodes:
            node.forget()

    @property
    def bootstrap(self) -> str:
        return ",".join(member.address for member in self.members.values())

    # An operator's

    def create(self, topic: str, assignments: Sequence[Sequence[int]], **configs: str) -> None:
        """Creates a topic and waits until all of its replicas are in sync."""
        self.assignments[topic] = assignments
        config = {"min.insync.replicas": "2", **dotted(configs)}
        new = NewTopic(topic, len(assignments), replica_assignment=[[*one] for one in assignments], config=config)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new])[topic].result(SOON_S)
        self.all_in_sync(topic, assignments)

    def all_in_sync(self, topic: str, assignments: Iterable[Iterable[int]]) -> None:
        eventually(lambda: self.in_sync(topic), [set(assignment) for assignment in assignments])

    def in_sync(self, topic: str) -> list[set[int]]:
        """Returns the in-sync replicas of each partition; empty while no broker answers."""
        return [set(isrs) for _, isrs in self._partitions(topic)]

    def leaders(self, topic: str) -> list[int]:
        """Returns the leader of each partition."""
        return [leader for leader, _ in self._partitions(topic)]

    def _partitions(self, topic: str) -> list[tuple[int, list[int]]]:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **RECONNECT})
        with suppress(KafkaException):
            partitions = admin.list_topics(topic, 10).topics[topic].partitions
            return [(partitions[index].leader, partitions[index].isrs) for index in sorted(partitions)]
        return []

    def assert_replicated(self, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        """Checks by all means that replicas without writers are equal."""
        assert self.assert_alike(topic, assignments)
        ReplicaVerification(self.bootstrap, topic).assert_alike()
        self.assert_dumped_alike(topic, assignments)

    # What is on disk

    def assert_alike(self, topic: str, assignments: Sequence[Sequence[int]]) -> int:
        """Checks that all replicas of each partition have the same bytes, once they are in sync and no client writes;
        returns their size."""
        self.all_in_sync(topic, assignments)
        total = 0
        for index, assignment in enumerate(assignments):
            folders = [self.members[node_id].replica(topic, index) for node_id in assignment]
            eventually(lambda folders=folders: len({log_bytes(folder) for folder in folders}), 1)  # type: ignore[misc]
            total += len(log_bytes(folders[0]))
        return total

    def assert_dumped_alike(self, topic: str, assignments: Sequence[Sequence[int]]) -> None:
        """Checks that kafka-dump-log finds the same batches in all replicas, and no problems."""
        for index, assignment in enumerate(assignments):
            dumps = dumped([self.members[node_id].replica(topic, index) for node_id in assignment])
            assert dumps[0], f"{topic}-{index} has no batches"
            assert all(dump == dumps[0] for dump in dumps), f"{topic}-{index}"


def dotted(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns options by their names, for keyword arguments with `__` for each dot."""
    return {key.replace("__", "."): value for key, value in settings.items()}


def log_bytes(folder: Path) -> bytes:
    """Returns all batches of a replica, oldest first."""
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def dumped(folders: Sequence[Path]) -> list[list[str]]:
    """Returns the lines of kafka-dump-log for each batch of each replica, without file and position."""
    files = [file for folder in folders for file in sorted(folder.glob("*.log"))]
    text = jvm.tool("kafka-dump-log", "--files", ",".join(map(str, files)))
    assert not re.search(r"invalid|mismatch|corrupt", text, re.IGNORECASE), text[-2000:]
    batches: dict[Path, list[str]] = {folder: [] for folder in folders}
    for of_file in text.split("Dumping ")[1:]:
        path, _, lines = of_file.partition("\n")
        batches[Path(path).parent] += re.findall(r"^(baseOffset: .*?) position: \d+ (.*)$", lines, re.MULTILINE)
    return [batches[folder] for folder in folders]


class ReplicaVerification:
    """kafka-replica-verification, which fetches all replicas side by side and compares them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        words = ("--broker-list", bootstrap, "--topics-include", topic, "--report-interval-ms", "500", "--time", "-2")
        command = jvm.command_of("kafka-replica-verification", *words)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def assert_alike(self, within_s: float = SOON_S) -> None:
        """Checks that the tool has read all replicas to their ends, and found no difference."""
        assert self._process.stdout is not None
        overdue = threading.Timer(within_s, self._process.kill)
        overdue.start()
        seen: list[str] = []
        for line in self._process.stdout:
            seen.append(line)
            if "max lag is 0 " in line:
                break
        overdue.cancel()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        text = "".join(seen)
        assert "max lag is 0 " in text, text[-3000:]
        assert "mismatch" not in text, text[-3000:]
        assert "Exception" not in text, text[-3000:]
