"""Apache Kafka's own software and Java clients: Maven fetches them once, into .cache/jvm. Standard library only."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
JARS = CACHE / "jvm"
APACHE_KAFKA = "4.4.0"
"""The version of the broker and of kafka-storage."""

APACHE_TOOLS = "4.3.1"
"""The version of the other tools, of Streams and of the test suites, and of brokers in rolling upgrades: Maven Central
has no test suites of 4.4.0, and older tools don't run with the classes of 4.4.0."""

POM = Path(__file__).with_name("apache-kafka.xml")
BROKER_POM = Path(__file__).with_name("apache-broker.xml")
STREAMS_POM = Path(__file__).with_name("apache-streams.xml")
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
RESOLVE_TIMEOUT_S = 600

ONE_TIER = "-XX:TieredStopAtLevel=1"
"""Java's first compiler alone: it costs little, but it doesn't use the processor's instructions for AES."""

# JVM flags of Apache Kafka's tools, which share two cores with the broker: one compiler tier, one collector thread, a
# small heap.
TOOL_FLAGS = (
    "-Xmx256m",
    ONE_TIER,
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


@contextmanager
def locked(name: str, folder: Path = JARS) -> Iterator[None]:
    """Holds a lock in a folder, so that only one process at a time fills this part of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def resolve(name: str, pom: Path, *definitions: str) -> Path:
    """Returns the folder with the jars of a pom; calls Maven only if the pom has changed.

    Raises RuntimeError with Maven's output if it can't get them.
    """
    folder = JARS / name
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    mark = folder / ".pom"
    with locked("maven"):  # two Mavens at a time would corrupt Maven's own cache
        if not mark.exists() or mark.read_text() != digest:
            shutil.rmtree(folder, ignore_errors=True)
            command = ["mvn", "-q", "-B", "-f", str(pom), *definitions, COPY_DEPENDENCIES]
            command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False)
            if ended.returncode:
                raise RuntimeError(f"`{' '.join(command)}` failed\n{ended.stdout[-8000:]}\n{ended.stderr[-2000:]}")
            mark.write_text(digest)
    return folder


@cache
def apache_kafka(version: str = APACHE_KAFKA) -> Path:
    """Returns the jars of a broker and of kafka-storage; of versions other than 4.4.0, with the other tools."""
    pom = BROKER_POM if version == APACHE_KAFKA else POM
    return resolve(f"apache-kafka-{version}", pom, f"-Dkafka.version={version}")


def storage_tool(*arguments: str) -> list[str]:
    """Returns the command line of kafka-storage."""
    return _java(APACHE_KAFKA, "kafka.tools.StorageTool", *arguments)


def tool(main: str, *arguments: str) -> list[str]:
    """Returns the command line of another of Apache Kafka's tools, by its main class."""
    return _java(APACHE_TOOLS, main, *arguments)


@cache
def apache_streams() -> Path:
    """Returns the jars of Kafka Streams."""
    return resolve(f"apache-streams-{APACHE_TOOLS}", STREAMS_POM, f"-Dkafka.version={APACHE_TOOLS}")


def streams_program(source: Path, *arguments: str) -> list[str]:
    """Returns the command line of a program with Kafka Streams, which Java compiles as it starts."""
    return _java_with(apache_streams(), str(source), *arguments)


def _java(version: str, main: str, *arguments: str) -> list[str]:
    return _java_with(apache_kafka(version), main, *arguments)


def _java_with(jars: Path, main: str, *arguments: str) -> list[str]:
    return ["java", *TOOL_FLAGS, "-cp", f"{jars}/*", main, *arguments]
