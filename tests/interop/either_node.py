"""A node of a cluster that may run either software: an id, addresses and a data directory."""

from __future__ import annotations

import enum
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.jars import APACHE_KAFKA
from tests.interop import jvm
from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.own_quorum import formatted
from tests.interop.processes import Server, run
from tests.interop.quorum import ApacheNode, format_directory

PATIENCE_S = 400
"""Timeout for the start or end of a process, when half a dozen processes share two cores."""


BROKER_HEAP = "-Xmx384m"
"""JVM heap of a node. The heap of a tool would be too small for three brokers under the load of a suite."""


class Make(enum.Enum):
    """The software of a node."""

    ODRADEK = "odradek"
    APACHE = "apache"


class Program(NamedTuple):
    """The way in which one software's nodes are formatted and run."""

    format: Callable[..., str]
    """(data directory, options, arguments of the tool, version=…) → the file of options; a formatted directory stays
    unchanged."""
    command: Callable[[str, str], list[str]]
    """Returns the command line for a file of options and a version of Apache Kafka."""
    ready: str
    """The log line that shows that the node serves; a broker logs it once it is unfenced."""


def _format_odradek(data: Path, settings: Mapping[str, str], *format_with: str, version: str) -> str:
    del version  # Apache Kafka's
    return formatted(data, settings, *format_with)


def _run_odradek(file: str, _version: str) -> list[str]:
    return [Odradek.program, "run", file]


def _run_apache(file: str, version: str) -> list[str]:
    return jvm.java(f"{jvm.apache_kafka(version)}/*", "kafka.Kafka", file, flags=(BROKER_HEAP, ApacheNode.VERBOSE))


PROGRAMS = {
    Make.ODRADEK: Program(_format_odradek, _run_odradek, r"^ready (\S+:\d+)$"),
    Make.APACHE: Program(format_directory, _run_apache, r"Kafka Server started"),
}


class EitherNode(Server):
    """A node of a cluster. Its software may change; its id, addresses, options and data stay."""

    def __init__(
        self, folder: Path, make: Make, settings: Mapping[str, str], *format_with: str, disks: int = 1
    ) -> None:
        role, self.node_id = settings["process.roles"].replace(",", "-"), int(settings["node.id"])
        self.data = folder / f"{role}-{self.node_id}"
        super().__init__(self.data.name, folder / f"{self.data.name}.log")
        self.make = make
        self.version = APACHE_KAFKA
        """The version of Apache Kafka, if it runs it."""
        self.folders = [self.data, *(folder / f"{self.data.name}-disk-{disk}" for disk in range(2, disks + 1))]
        """Its log directories; the first has the metadata."""
        self.settings = {**settings, "log.dirs": ",".join(map(str, self.folders))}
        self._format_with = format_with

    def __repr__(self) -> str:
        return f"{self.make.value} {self.data.name}"

    @property
    def address(self) -> str:
        """Returns the address for clients or, of a controller, for brokers."""
        return self.settings["listeners"].split(",")[0].split("://")[1]

    def start(self) -> None:
        """Runs the node until it serves; a broker must first wait for the end of the session of an earlier killed
        process."""
        program = PROGRAMS[self.make]
        file = program.format(self.data, self.settings, *self._format_with, version=self.version)
        self.launch(program.command(file, self.version), program.ready, PATIENCE_S)

    def end(self) -> None:
        """Stops the node as an operator does, and waits until its leaders have moved."""
        self.signal(signal.SIGTERM)
        self.wait(PATIENCE_S)

    def replica(self, topic: str, index: int) -> Path:
        """Returns the folder of its replica of a partition, in whichever directory it is."""
        folders = [folder / f"{topic}-{index}" for folder in self.folders]
        return next((folder for folder in folders if folder.is_dir()), folders[0])

    def reformat(self) -> None:
        """Formats new directories, as an operator does after replacing a disk; either software accepts them."""
        file = str(self.data.with_name(f"{self.data.name}.properties"))
        run([Odradek.program, "format", "--cluster-id", CLUSTER_ID, "--config", file, "--ignore-formatted"])

    def become(self, make: Make) -> None:
        """Stops the node, and starts the other software on its directory and addresses."""
        self.end()
        self.make = make
        self.start()
