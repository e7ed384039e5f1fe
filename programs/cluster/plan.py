"""The nodes of a cluster on one machine: their ids, ports, directories and options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from broker.config.listeners import metrics_address
from protocol.config import ConfigError

MAX_BROKERS: Final = 100
"""Maximum number of brokers of a cluster on one machine. A larger number is probably a typing error."""

MAX_CONTROLLERS: Final = 9
"""Maximum number of controllers: four of nine may fail. Each change waits for the disks of a majority."""

CONTROLLER: Final = "controller"
LOOPBACK: Final = "127.0.0.1"
"""The controller's host: only brokers on this machine connect to it."""

MAX_REPLICATION_FACTOR: Final = 3
"""Maximum number of replicas of internal topics, which is Apache Kafka's default: one broker may be down while another
restarts."""

MAX_PORT: Final = (1 << 16) - 1

REPLICATED: Final = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
"""The prefixes of the internal topics' options."""

METRICS: Final = "odradek.metrics.listener"
"""The option with the controller's metrics address. A broker's port is the controller's plus the broker's id."""

GIVEN: Final = frozenset({
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "node.id",
    "process.roles",
})  # fmt: skip
"""The options that differ from node to node. Only the command sets them, not the environment or --set."""


class FirstAddress(NamedTuple):
    """The address of the first node; the others have the next ports. Port 0 picks free ports."""

    host: str
    port: int


class Shape(NamedTuple):
    """The identity of a cluster over its restarts."""

    cluster_id: str
    controller_ports: tuple[int, ...]
    broker_ports: tuple[int, ...]
    directory_ids: tuple[str, ...] = ()
    """The ids of the controllers' directories, by which the voters of a new quorum are known."""


class NodePlan(NamedTuple):
    """One process: its name in the log, its directory, and its options."""

    name: str
    directory: str
    settings: Mapping[str, str]

    @property
    def is_controller(self) -> bool:
        return self.name.startswith(CONTROLLER)

    @property
    def file(self) -> str:
        """The path of its file of options."""
        return f"{self.directory}.properties"


def controller_name(index: int) -> str:
    """Returns the name of a controller, and of its directory; they count from 0."""
    return f"{CONTROLLER}-{index + 1}" if index else CONTROLLER


def controller_id(index: int) -> int:
    """Returns the node id of a controller: 0 for the first; the others have ids that no broker has."""
    return MAX_BROKERS + index if index else 0


def broker_name(node_id: int) -> str:
    """Returns the name of a broker, and of its directory."""
    return f"broker-{node_id}"


def parse_address(text: str) -> FirstAddress:
    """Returns the address of HOST:PORT. Raises ConfigError."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > MAX_PORT or "/" in host:
        raise ConfigError(f"--listen {text}: is not HOST:PORT, such as 127.0.0.1:9092; port 0 picks free ports")
    return FirstAddress(host, int(port))


def check_assignments(names: Sequence[str]) -> None:
    """Raises ConfigError for an option that the command sets."""
    for name in names:
        if name in GIVEN:
            raise ConfigError(f"--set {name}: each node has its own value, which `odradek cluster` sets")


def nodes(data: str, host: str, shape: Shape, metrics: FirstAddress | None = None) -> list[NodePlan]:
    """Returns the controllers, then the brokers by their ids; `metrics` is the first controller's metrics address."""
    controllers = [f"{LOOPBACK}:{port}" for port in shape.controller_ports]
    quorum = {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
    }
    internal = internal_topics(len(shape.broker_ports))
    plans = [
        _node(data, controller_name(index), {
            "process.roles": "controller",
            "node.id": str(controller_id(index)),
            "listeners": f"CONTROLLER://{controller}",
            **quorum,
            **internal,
            **own_metrics(metrics, controller_id(index)),
        })
        for index, controller in enumerate(controllers)
    ]  # fmt: skip
    for node_id, port in enumerate(shape.broker_ports, 1):
        listener = f"PLAINTEXT://{host}:{port}"
        settings = {"process.roles": "broker", "node.id": str(node_id), "listeners": listener, **quorum, **internal}
        plans.append(_node(data, broker_name(node_id), settings | own_metrics(metrics, node_id)))
    return plans


def first_metrics(text: str | None, brokers: int, controllers: int = 1) -> FirstAddress | None:
    """Returns the address of odradek.metrics.listener; None if it is not set. Raises ConfigError, also if there are not
    enough ports."""
    address = metrics_address(text)
    if address is None:
        return None
    first = FirstAddress(*address)
    if first.port + max(brokers, controller_id(controllers - 1)) > MAX_PORT:
        raise ConfigError(f"{METRICS}={text}: {brokers} brokers need as many ports after it")
    return first


def own_metrics(first: FirstAddress | None, node_id: int) -> dict[str, str]:
    """Returns the option with a node's metrics address; its port is 0, any free port, if the first node's is 0."""
    if first is None:
        return {}
    host = f"[{first.host}]" if ":" in first.host else first.host
    return {METRICS: f"{host}:{first.port + node_id if first.port else 0}"}


def internal_topics(brokers: int) -> dict[str, str]:
    """Returns the replication options of internal topics: at most three replicas, and one fewer as the minimum ISR."""
    factor = min(MAX_REPLICATION_FACTOR, brokers)
    settings = {f"{name}.replication.factor": str(factor) for name in REPLICATED}
    settings |= {f"{name}.min.isr": str(max(factor - 1, 1)) for name in REPLICATED[1:]}
    return settings


def _node(data: str, name: str, settings: Mapping[str, str]) -> NodePlan:
    directory = os.path.join(data, name)
    return NodePlan(name, directory, {**settings, "log.dirs": directory})


def as_properties(settings: Mapping[str, str]) -> str:
    """Returns the text of a Java properties file."""
    lines = (f"{name}={value.replace(BACKSLASH, 2 * BACKSLASH)}\n" for name, value in settings.items())
    return "# Written by `odradek cluster` at each start.\n" + "".join(lines)


BACKSLASH: Final = "\\"
