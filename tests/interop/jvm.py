"""Apache Kafka's own software: resolved once by Maven into .cache, run with as little JVM as will do."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.interop.processes import CACHE, LineClient, run

HERE = Path(__file__).parent / "jvm"
JARS = CACHE / "jvm"
APACHE_KAFKA = "4.3.1"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

# The tools by the names of their scripts.
TOOLS = {
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

# Two cores for everything: one compiler tier, one collector thread, a small heap.
FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
LOG_LEVEL = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time makes a thing of the cache."""
    JARS.mkdir(parents=True, exist_ok=True)
    with (JARS / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def resolve(name: str, pom: str, *definitions: str) -> Path:
    """The folder with the jars that a pom asks for; Maven is called only when the pom has changed."""
    folder = JARS / name
    wanted = hashlib.sha256((HERE / pom).read_bytes()).hexdigest()
    mark = folder / ".pom"
    with locked(name):
        if not mark.exists() or mark.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            command = ["mvn", "-q", "-B", "-f", str(HERE / pom), *definitions, COPY_DEPENDENCIES]
            run([*command, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"], timeout_s=600)
            mark.write_text(wanted)
    return folder


@cache
def apache_kafka() -> Path:
    """The jars of the broker and its command line tools."""
    return resolve(f"apache-kafka-{APACHE_KAFKA}", "apache-kafka.xml", f"-Dkafka.version={APACHE_KAFKA}")


@cache
def clients(version: str) -> Path:
    """The jars of the Java client of one version."""
    return resolve(f"clients-{version}", "clients.xml", f"-Dkafka.version={version}")


def java(classpath: str, main: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    return ["java", *FLAGS, LOG_LEVEL, *flags, "-cp", classpath, main, *arguments]


def command_of(name: str, *arguments: str) -> list[str]:
    """The command line of one of Apache Kafka's tools, by the name of its script."""
    return java(f"{apache_kafka()}/*", TOOLS[name], *arguments)


def tool(name: str, *arguments: str, stdin: str = "", timeout_s: float = 120) -> str:
    """Run one of Apache Kafka's tools to its end; what it printed. A bad status fails the test."""
    return run(command_of(name, *arguments), stdin=stdin.encode(), timeout_s=timeout_s).stdout.decode()


def compiled(source: str, version: str) -> str:
    """The class path with `source` compiled against the Java client of one version."""
    jars = clients(version)
    text = (HERE / source).read_bytes()
    folder = JARS / f"classes-{version}-{hashlib.sha256(text).hexdigest()[:12]}"
    with locked(folder.name):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            run(["javac", "--release", "8", "-Xlint:-options", "-cp", f"{jars}/*", "-d", str(made), str(HERE / source)])
            made.rename(folder)
    return f"{folder}:{jars}/*"


def line_client(version: str, log: Path) -> LineClient:
    """A JVM with the Java client of one version, which takes commands until it is closed."""
    return LineClient(f"java {version}", java(compiled("Client.java", version), "Client"), log)
