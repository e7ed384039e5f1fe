"""A place in a cluster, which either make may have: an id, addresses and a data directory."""

from __future__ import annotations

import enum
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.interop import jvm
from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.own_quorum import formatted
from tests.interop.processes import Server, run
from tests.interop.quorum import ApacheNode, format_directory

PATIENCE_S = 400
"""How long a process may take to begin or to end where half a dozen share two cores."""


BROKER_HEAP = "-Xmx384m"
"""JVM heap of a node: more than that of a tool, which is too small for three brokers under a suite's load."""


class Make(enum.Enum):
    """Who made a node."""

    ODRADEK = "odradek"
    APACHE = "apache"


class Program(NamedTuple):
    """How one make's nodes are formatted and run."""

    format: Callable[..., str]
    """(data directory, options, arguments of the tool) → the file of options; what is formatted stays as it is."""
    command: Callable[[str], list[str]]
    """The command line, by the file of options."""
    ready: str
    """The line by which it says that it serves; a broker does once it is unfenced."""


def _run_apache(file: str) -> list[str]:
    return jvm.java(f"{jvm.apache_kafka()}/*", "kafka.Kafka", file, flags=(BROKER_HEAP, ApacheNode.VERBOSE))


PROGRAMS = {
    Make.ODRADEK: Program(formatted, lambda file: [Odradek.program, "run", file], r"^ready (\S+:\d+)$"),
    Make.APACHE: Program(format_directory, _run_apache, r"Kafka Server started"),
}


class EitherNode(Server):
    """One node of a cluster. Who made it may change; its id, its addresses, its options and its data stay."""

    def __init__(
        self, folder: Path, make: Make, settings: Mapping[str, str], *format_with: str, disks: int = 1
    ) -> None:
        role, self.node_id = settings["process.roles"], int(settings["node.id"])
        self.data = folder / f"{role}-{self.node_id}"
        super().__init__(self.data.name, folder / f"{self.data.name}.log")
        self.make = make
        self.folders = [self.data, *(folder / f"{self.data.name}-disk-{disk}" for disk in range(2, disks + 1))]
        """Its log directories; the first has the metadata."""
        self.settings = {**settings, "log.dirs": ",".join(map(str, self.folders))}
        self._format_with = format_with

    def __repr__(self) -> str:
        return f"{self.make.value} {self.data.name}"

    @property
    def address(self) -> str:
        """Where clients find it, or brokers, where it is a controller."""
        return self.settings["listeners"].split(",")[0].split("://")[1]

    def start(self) -> None:
        """Runs it until it serves: a broker, until the session of a process that was killed here before is over."""
        program = PROGRAMS[self.make]
        file = program.format(self.data, self.settings, *self._format_with)
        self.launch(program.command(file), program.ready, PATIENCE_S)

    def end(self) -> None:
        """Ends it as an operator does, who waits until its leaders have moved."""
        self.signal(signal.SIGTERM)
        self.wait(PATIENCE_S)

    def replica(self, topic: str, index: int) -> Path:
        """The folder of its replica of a partition, in whichever directory it is."""
        folders = [folder / f"{topic}-{index}" for folder in self.folders]
        return next((folder for folder in folders if folder.is_dir()), folders[0])

    def reformat(self) -> None:
        """Formats directories that are new, as an operator does who has replaced a disk; either make takes them."""
        file = str(self.data.with_name(f"{self.data.name}.properties"))
        run([Odradek.program, "format", "--cluster-id", CLUSTER_ID, "--config", file, "--ignore-formatted"])

    def become(self, make: Make) -> None:
        """Ends it, and starts the other make on its directory, at its addresses."""
        self.end()
        self.make = make
        self.start()
