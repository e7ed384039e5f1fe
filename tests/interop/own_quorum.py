"""A controller of Odradek, and brokers of either kind that join it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.processes import Server, free_port, run
from tests.interop.quorum import CONTROLLER_ID, ONE_OF_EACH, ApacheNode

READY_WITHIN_S = 90
"""Timeout of a start: a broker waits for its controller, and for the end of its last session."""

SESSION_MS = 3_000
"""Session timeout of a killed broker."""


def formatted(data: Path, settings: Mapping[str, str], *format_with: str) -> str:
    """Returns the file of properties; formats the directory if it isn't formatted."""
    file = data.with_name(f"{data.name}.properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in {"log.dirs": str(data), **settings}.items()))
    if not data.exists():
        run([Odradek.program, "format", "--cluster-id", CLUSTER_ID, "--config", str(file), *format_with])
    return str(file)


class OdradekNode(Server):
    """A controller or a broker of Odradek, in its own process and with its own addresses."""

    def __init__(self, data: Path, settings: Mapping[str, str], *format_with: str) -> None:
        super().__init__(
            f"odradek {settings['process.roles']} {settings['node.id']}", data.with_name(f"{data.name}.log")
        )
        self.data = data
        self.settings = dict(settings)
        self._format_with = format_with

    @property
    def command(self) -> list[str]:
        """Returns its command line; its directory is formatted before."""
        return [Odradek.program, "run", formatted(self.data, self.settings, *self._format_with)]

    def start(self) -> None:
        self.launch(self.command, r"^ready (\S+:\d+)$", READY_WITHIN_S)

    def restart(self) -> None:
        """Starts the node again after a stop or a kill; stops a running node cleanly first."""
        self.stop()
        self.start()

    @property
    def bootstrap(self) -> str:
        """Returns the address for clients."""
        listeners = dict(listener.split("://") for listener in self.settings["listeners"].split(","))
        return listeners["PLAINTEXT"]


class OwnQuorum:
    """A controller of Odradek, which may be a broker as well, and its address for brokers."""

    def __init__(self, folder: Path, *, is_broker: bool = False, **settings: str) -> None:
        """`settings` are the controller's, with `__` for each dot."""
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.joining = {
            **ONE_OF_EACH,
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": self.address,
            "controller.listener.names": "CONTROLLER",
            "broker.session.timeout.ms": str(SESSION_MS),
            "replica.lag.time.max.ms": "2000",
            "replica.fetch.backoff.ms": "100",
        }
        own = {**self.joining, "process.roles": "controller", "node.id": str(CONTROLLER_ID)}
        own["listeners"] = f"CONTROLLER://{self.address}"
        if is_broker:
            own["process.roles"] = "broker,controller"
            own["listeners"] += f",PLAINTEXT://127.0.0.1:{free_port()}"
        own |= {key.replace("__", "."): value for key, value in settings.items()}
        self.controller = OdradekNode(folder / "controller", own, "--standalone")

    def odradek(self, node_id: int, **properties: str) -> OdradekNode:
        """Returns a broker of Odradek that joins."""
        settings = {**self.joining, "node.id": str(node_id), "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        return OdradekNode(self.folder / f"odradek-{node_id}", {**settings, **properties})

    def apache(self, node_id: int, **properties: str) -> tuple[ApacheNode, str]:
        """Returns a broker of Apache Kafka that joins, and its address."""
        address = f"127.0.0.1:{free_port()}"
        settings = {**self.joining, "node.id": str(node_id), "listeners": f"PLAINTEXT://{address}", **properties}
        return ApacheNode(self.folder / f"apache-{node_id}", settings, "--no-initial-controllers"), address
