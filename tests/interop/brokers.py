"""The two brokers that the tests start: Odradek, and Apache Kafka in KRaft combined mode, with the same methods."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from bench.jars import APACHE_KAFKA
from tests.interop import jvm
from tests.interop.processes import Server, free_port, run
from tests.interop.recording import Proxy

READY_TIMEOUT_S = 30
JVM_READY_TIMEOUT_S = 90
CLUSTER_ID = "b2RyYWRlay1pbnRlcm9wLg"
ALONE = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Properties of a single broker whose internal topics have one partition."""


class Broker(Protocol):
    """The interface of a broker to a test, for both kinds."""

    data: Path

    @property
    def bootstrap(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> int: ...
    def kill9(self) -> None: ...
    def restart(self) -> None: ...
    def forget(self) -> None: ...


class Odradek(Server):
    """A real `odradek run` on a free port, which it keeps over its restarts."""

    program: ClassVar = str(Path(sys.executable).with_name("odradek"))
    """The path of the `odradek` command: the source tree's, unless the tests set another."""

    recorded: ClassVar[Path | None] = None
    """The folder in which clients' requests are recorded, if they are."""

    def __init__(self, data: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__("odradek", data.with_name(f"{data.name}.log"))
        self.data = data
        self.properties = dict(properties or {})
        self._listen = "127.0.0.1:0"
        self._proxy = None if self.recorded is None else Proxy(self.recorded)
        if self._proxy is not None:
            self._proxy.broker = ("127.0.0.1", free_port())
            self._listen = f"127.0.0.1:{self._proxy.broker[1]}"
            self.properties.setdefault("advertised.listeners", f"PLAINTEXT://{self._proxy.address}")

    @property
    def bootstrap(self) -> str:
        assert not self._listen.endswith(":0"), "not started"
        return self._listen if self._proxy is None else self._proxy.address

    def command(self) -> list[str]:
        settings = [word for key, value in self.properties.items() for word in ("--set", f"{key}={value}")]
        return [self.program, "run", "--listen", self._listen, "--data", str(self.data), *settings]

    def start(self) -> None:
        ready = self.launch(self.command(), r"^ready (\S+:\d+)$", READY_TIMEOUT_S)[1]
        self._listen = ready if self._proxy is None else self._listen

    def restart(self) -> None:
        """Starts the broker again after a stop or a kill; stops a running broker cleanly first."""
        self.stop()
        self.start()


class ApacheKafka(Server):
    """A real Apache Kafka broker that is its own controller. It formats its directory unless told otherwise."""

    def __init__(
        self,
        data: Path,
        properties: Mapping[str, str] | None = None,
        *,
        formatted: bool = False,
        version: str = APACHE_KAFKA,
        flags: tuple[str, ...] = (),
    ) -> None:
        """`flags` are more flags of the JVM."""
        super().__init__("apache kafka", data.with_name(f"{data.name}.log"))
        jars = jvm.apache_kafka(version)
        self._classpath = f"{jars}/*"
        if any(jars.glob("slf4j-reload4j-*.jar")):  # 3.9 brings another logger: the first one is used
            self._classpath = ":".join([*map(str, jars.glob("slf4j-simple-*.jar")), self._classpath])
        self.data = data
        self.properties = dict(properties or {})
        self._formatted = formatted
        self._flags = ("-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info", *flags)
        self._port, self._controller_port = free_port(), free_port()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def controller(self) -> str:
        """Returns the address of its controller's listener."""
        return f"127.0.0.1:{self._controller_port}"

    def write_properties(self) -> str:
        controller = self.controller
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            **ALONE,
            **self.properties,
        }
        file = self.data.with_name(f"{self.data.name}.properties")
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(file)

    def start(self) -> None:
        properties = self.write_properties()
        if not self._formatted:
            self.data.mkdir(parents=True, exist_ok=True)
            storage_tool = jvm.TOOLS["kafka-storage"]
            run(jvm.java(self._classpath, storage_tool, "format", "-t", CLUSTER_ID, "-c", properties))
            self._formatted = True
        command = jvm.java(self._classpath, "kafka.Kafka", properties, flags=self._flags)
        self.launch(command, r"Kafka Server started", JVM_READY_TIMEOUT_S)

    def restart(self) -> None:
        """Starts the broker again after a stop or a kill; stops a running broker cleanly first."""
        self.stop()
        self.start()


def cluster_id(data: Path) -> str:
    """Returns the cluster id in a data directory's meta.properties."""
    match = re.search(r"^cluster\.id=(\S+)$", (data / "meta.properties").read_text(), re.MULTILINE)
    assert match, f"{data}: no cluster.id in meta.properties"
    return match[1]
