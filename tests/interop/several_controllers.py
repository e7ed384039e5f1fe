"""A quorum of several controllers, of either software, which may be brokers as well, and brokers that join it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.interop.brokers import Odradek
from tests.interop.either_node import EitherNode, Make
from tests.interop.network import Network
from tests.interop.own_quorum import OdradekNode
from tests.interop.processes import free_port, run
from tests.interop.quorum import ONE_OF_EACH

DIRECTORIES = {
    101: "JEXY6aqzQY-32P5TStzaFg",
    102: "MvDxzVmcRsaTz33bUuRU6A",
    103: "07R5amHmR32VDA6jHkGbTA",
}
"""The node ids of the voters, and the ids of their directories."""

ODRADEK = (Make.ODRADEK,) * len(DIRECTORIES)


class SeveralControllers:
    """Three voters and their addresses."""

    def __init__(
        self,
        folder: Path,
        makes: Sequence[Make] = ODRADEK,
        settings: Mapping[str, str] | None = None,
        *,
        are_static: bool = False,
        are_brokers: bool = False,
        is_grown: bool = False,
        has_network: bool = False,
        to_add: Sequence[int] = (),
        format_with: Sequence[str] = (),
    ) -> None:
        """`are_static` puts the voters into the configuration instead of the log. `are_brokers` gives each node both
        roles. With `is_grown`, the first node is the only voter, and the others join later. With `has_network`, other
        nodes reach the controllers over a network that can be cut. `to_add` are the ids of controllers that are added
        later: all nodes have their addresses from the start, because those of Apache Kafka that aren't voters look for
        a leader only among `controller.quorum.bootstrap.servers`. `format_with` are further arguments for formatting
        the controllers."""
        self.folder = folder
        self._are_brokers = are_brokers
        self.network = Network(folder, self._processes) if has_network else None
        self._listening = {node_id: f"127.0.0.1:{free_port()}" for node_id in (*DIRECTORIES, *to_add)}
        self.addresses = {
            node_id: address if self.network is None else self.network.before(node_id, address)
            for node_id, address in self._listening.items()
        }
        """The addresses at which other nodes reach the controllers."""
        self.brokers: dict[int, EitherNode] = {}
        self.joining = {
            **ONE_OF_EACH,
            "process.roles": "broker",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(self.addresses.values()),
            "replica.lag.time.max.ms": "2000",
            "replica.fetch.backoff.ms": "100",
            **(settings or {}),
        }
        if are_static:
            del self.joining["controller.quorum.bootstrap.servers"]
            voters = (f"{node_id}@{address}" for node_id, address in self.addresses.items())
            self.joining["controller.quorum.voters"] = ",".join(voters)
        self._format_with = (*format_with, *(() if are_static else ("--initial-controllers", self.initial)))
        self.nodes: dict[int, EitherNode] = {}
        for node_id, make in zip(DIRECTORIES, makes, strict=True):
            if is_grown:
                self._format_with = (*format_with, "--no-initial-controllers" if self.nodes else "--standalone")
            self.nodes[node_id] = self.controller(node_id, make)

    @property
    def initial(self) -> str:
        """Returns the voters as `--initial-controllers` names them."""
        return ",".join(f"{one}@{self.addresses[one]}:{directory}" for one, directory in DIRECTORIES.items())

    def controller(self, node_id: int, make: Make) -> EitherNode:
        settings = {
            **self.joining,
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://{self._listening[node_id]}",
        }
        if self.network is not None:
            settings["advertised.listeners"] = f"CONTROLLER://{self.addresses[node_id]}"
        if self._are_brokers:
            settings["process.roles"] = "broker,controller"
            settings["listeners"] = f"PLAINTEXT://127.0.0.1:{free_port()},{settings['listeners']}"
        return EitherNode(self.folder, make, settings, *self._format_with)

    def controller_to_add(self, node_id: int, make: Make) -> EitherNode:
        """Returns a controller, one of `to_add`, that isn't a voter yet."""
        self._format_with = ("--no-initial-controllers",)
        return self.controller(node_id, make)

    def _processes(self) -> dict[int, int]:
        nodes = [*self.nodes.values(), *self.brokers.values()]
        return {node.node_id: node.pid for node in nodes if node.is_running}

    def join(self, node_id: int, make: Make = Make.ODRADEK) -> EitherNode:
        """Adds a broker, which `start` starts after the controllers."""
        settings = {**self.joining, "node.id": str(node_id), "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        self.brokers[node_id] = EitherNode(self.folder, make, settings, "--no-initial-controllers")
        return self.brokers[node_id]

    @property
    def bootstrap(self) -> str:
        """Returns the addresses of the brokers for clients: of all nodes with both roles, or of the joined brokers."""
        brokers = self.nodes if self._are_brokers else self.brokers
        return ",".join(broker.address for broker in brokers.values())

    def broker(self, node_id: int) -> OdradekNode:
        """Returns a broker of Odradek that joins."""
        settings = {**self.joining, "node.id": str(node_id), "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        return OdradekNode(self.folder / f"odradek-{node_id}", settings)

    def start(self) -> None:
        """Starts all controllers at the same time, because the first is ready only once a majority runs; then the
        brokers."""
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(EitherNode.start, self.nodes.values()))
        for broker in self.brokers.values():
            broker.start()

    def stop(self) -> None:
        for node in (*self.brokers.values(), *self.nodes.values()):
            node.stop()
            node.forget()
        if self.network is not None:
            self.network.close()

    def forget(self) -> None:
        """Ends all processes."""
        for node in (*self.brokers.values(), *self.nodes.values()):
            node.forget()
        if self.network is not None:
            self.network.close()


def described(bootstrap: str) -> dict[str, object]:
    """Returns the quorum as `odradek cluster quorum` shows it."""
    words = [Odradek.program, "cluster", "quorum", "--bootstrap", bootstrap, "--output", "json"]
    answer = json.loads(run(words).stdout)
    assert isinstance(answer, dict)
    return answer


def lags(bootstrap: str) -> dict[int, object]:
    """Returns the lag of each voter; None if it is unknown."""
    replicas = described(bootstrap)["replicas"]
    assert isinstance(replicas, list)
    return {replica["node"]: replica["lag"] for replica in replicas if replica["role"] != "observer"}


def leader_of(bootstrap: str) -> int:
    """Returns the voter that leads."""
    leader = described(bootstrap)["leader"]
    assert isinstance(leader, int)
    return leader
