"""The two kinds of nodes, Odradek's and Apache Kafka's: how they are formatted and started."""

from __future__ import annotations

import re
import resource
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench import jars, wheel
from bench.peers.brokers import ApacheKafka
from bench.peers.peer import Unavailable, require

CLUSTER_ID = ApacheKafka.CLUSTER_ID
CONTROLLER_HEAP = ("-Xms256m", "-Xmx256m")
"""JVM heap of a controller; the metadata of three brokers are small."""

MAX_MAP_COUNT = Path("/proc/sys/vm/max_map_count")
BESIDE = 2_000
"""Descriptors and mappings of a JVM besides those of logs. Apache Kafka has the segment of each replica open, and both
of its indexes mapped.
"""


class Make(ABC):
    """The software of a node."""

    title: ClassVar[str]
    ready: ClassVar[re.Pattern[bytes]]

    def prepare(self) -> None:  # noqa: B027 - some need nothing
        """Prepares everything that a start needs. Raises Unavailable."""

    def require_room(self, replicas: int) -> None:  # noqa: B027 - some open what they need
        """Raises Unavailable if this machine's limits are too low for so many replicas."""

    @abstractmethod
    def storage_tool(self) -> list[str]:
        """Returns the command that formats a directory, without its arguments."""

    @abstractmethod
    def command(self, properties: Path, *, is_controller: bool) -> list[str]:
        """Returns the command that runs a node."""

    def format(self, properties: Path, *arguments: str) -> None:
        """Formats the directories of a node. Raises Unavailable."""
        command = [*self.storage_tool(), *arguments, "-t", CLUSTER_ID, "-c", str(properties)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Unavailable(f"formatting failed: {ended.stdout[-500:]}{ended.stderr[-500:]}")


class OdradekMake(Make):
    """Odradek as installed from its wheel."""

    title = "Odradek"
    ready = re.compile(rb"^ready ", re.MULTILINE)

    def prepare(self) -> None:
        try:
            wheel.program()
        except wheel.NotBuilt as error:
            raise Unavailable(str(error)) from error

    def storage_tool(self) -> list[str]:
        return [wheel.program(), "format"]

    def command(self, properties: Path, *, is_controller: bool) -> list[str]:
        return [wheel.program(), "run", str(properties)]


class ApacheMake(Make):
    """Apache Kafka with the JVM flags of its own start script."""

    title = f"Apache Kafka {jars.APACHE_KAFKA}"
    ready = re.compile(rb"Kafka Server started")

    def prepare(self) -> None:
        require("java", "mvn")

    def require_room(self, replicas: int) -> None:
        _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
        mappings = int(MAX_MAP_COUNT.read_text())
        if 0 <= descriptors < replicas + BESIDE or mappings < 2 * replicas + BESIDE:
            raise Unavailable(
                f"{replicas} replicas need as many descriptors and two mappings each, plus {BESIDE} of both; but "
                f"ulimit -Hn is {descriptors}, vm.max_map_count {mappings}"
            )

    def storage_tool(self) -> list[str]:
        return jars.storage_tool("format")

    def command(self, properties: Path, *, is_controller: bool) -> list[str]:
        flags = (*ApacheKafka.FLAGS, *(CONTROLLER_HEAP if is_controller else ()))
        return ["java", *flags, "-cp", f"{jars.apache_kafka()}/*", "kafka.Kafka", str(properties)]


def write_properties(file: Path, settings: Mapping[str, str]) -> Path:
    """Writes a server.properties, and returns its path."""
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file
