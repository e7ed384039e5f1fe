"""A quorum of Apache Kafka's own controllers, and brokers of either kind that join it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bench.jars import APACHE_KAFKA
from tests.interop import jvm
from tests.interop.brokers import ALONE, CLUSTER_ID, JVM_READY_TIMEOUT_S, Odradek
from tests.interop.processes import Server, free_port, run

SESSION_MS = 3_000
"""Session timeout of a killed broker, and so the wait of a broker that comes back."""

CONTROLLER_ID = 100

ONE_OF_EACH = {
    **ALONE,
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "2097152",
}


class ApacheNode(Server):
    """A controller or a broker of Apache Kafka, in its own process."""

    VERBOSE: ClassVar = "-Dorg.slf4j.simpleLogger.log.kafka.server=info"

    def __init__(self, data: Path, settings: Mapping[str, str], *format_with: str) -> None:
        super().__init__(
            f"apache {settings['process.roles']} {settings['node.id']}", data.with_name(f"{data.name}.log")
        )
        self.data = data
        self._settings = {**settings, "log.dirs": str(data)}
        self._format_with = format_with

    def start(self) -> None:
        properties = format_directory(self.data, self._settings, *self._format_with)
        command = jvm.java(f"{jvm.apache_kafka()}/*", "kafka.Kafka", properties, flags=(self.VERBOSE,))
        self.launch(command, r"Kafka Server started", JVM_READY_TIMEOUT_S)

    def restart(self) -> None:
        """Starts the node again after a stop or a kill; stops a running node cleanly first."""
        self.stop()
        self.start()


class OnSeveral(Odradek):
    """A broker with several log directories, the first of which has the metadata."""

    def __init__(self, folders: Sequence[Path], properties: Mapping[str, str]) -> None:
        super().__init__(folders[0], properties)
        self._folders = folders

    def command(self) -> list[str]:
        folders = ",".join(map(str, self._folders))
        return [folders if word == str(self.data) else word for word in super().command()]


class Quorum:
    """A controller, which may be a broker as well, and its address for brokers."""

    def __init__(
        self,
        folder: Path,
        *,
        is_broker: bool = False,
        session_ms: int = SESSION_MS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._port = free_port()
        address = f"127.0.0.1:{self._port}"
        self.joining = {
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": address,
            "controller.listener.names": "CONTROLLER",
            **ONE_OF_EACH,
            "broker.session.timeout.ms": str(session_ms),
            **(settings or {}),
        }
        own = {**self.joining, "process.roles": "controller", "node.id": str(CONTROLLER_ID)}
        own["listeners"] = f"CONTROLLER://{address}"
        self.bootstrap = f"127.0.0.1:{free_port()}"
        """The address of the controller's broker, if it is one."""
        if is_broker:
            own["process.roles"] = "broker,controller"
            own["listeners"] += f",PLAINTEXT://{self.bootstrap}"
        self.controller = ApacheNode(folder / "controller", own, "--standalone")

    def odradek(self, node_id: int, cluster_id: str = CLUSTER_ID, dirs: int = 1, **properties: str) -> Odradek:
        """Returns a broker that joins, on directories formatted by kafka-storage."""
        folders = [self.folder / f"odradek-{node_id}{'-more' * number}" for number in range(dirs)]
        data = folders[0]
        settings = {**self.joining, "node.id": str(node_id), **properties}
        listening = {"log.dirs": ",".join(map(str, folders)), "listeners": "PLAINTEXT://127.0.0.1:9092"}
        format_directory(data, {**settings, **listening}, "--no-initial-controllers", cluster_id=cluster_id)
        return Odradek(data, settings) if dirs == 1 else OnSeveral(folders, settings)

    def apache(self, node_id: int, **properties: str) -> tuple[ApacheNode, str]:
        """Returns another such broker, and its address."""
        address = f"127.0.0.1:{free_port()}"
        settings = {**self.joining, "node.id": str(node_id), "listeners": f"PLAINTEXT://{address}", **properties}
        return ApacheNode(self.folder / f"apache-{node_id}", settings, "--no-initial-controllers"), address


def format_directory(
    data: Path,
    settings: Mapping[str, str],
    *format_with: str,
    cluster_id: str = CLUSTER_ID,
    version: str = APACHE_KAFKA,
) -> str:
    """Returns the file of properties; formats the directory if it isn't formatted."""
    file = data.with_name(f"{data.name}.properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    if not data.exists():
        data.mkdir(parents=True)
        words = ("format", "-t", cluster_id, "-c", str(file), *format_with)
        run(jvm.java(f"{jvm.apache_kafka(version)}/*", jvm.TOOLS["kafka-storage"], *words))
    return str(file)
