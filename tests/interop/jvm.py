"""Runs Apache Kafka's tools and Java clients of all versions, in JVMs that are as small as possible."""

from __future__ import annotations

import hashlib
import shutil
from functools import cache
from pathlib import Path

from bench.jars import APACHE_KAFKA, APACHE_TOOLS, JARS, TOOL_FLAGS, locked, resolve
from bench.jars import apache_kafka as apache_kafka  # tests look it up here
from tests.interop.processes import LineClient, run

HERE = Path(__file__).parent / "jvm"

NEWEST_METADATA = "4.4-IV2"
"""The newest metadata.version, as kafka-features prints it."""

# The tools by the names of their scripts.
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}

VERSIONS = {"kafka-storage": (APACHE_KAFKA,), "kafka-features": (APACHE_KAFKA, APACHE_TOOLS)}
"""The versions of the classes of tools, first to last. kafka-features has the releases of the newest."""


@cache
def clients(version: str) -> Path:
    """Returns the jars of the Java client of one version."""
    return resolve(f"clients-{version}", HERE / "clients.xml", f"-Dkafka.version={version}")


def java(classpath: str, main: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    return ["java", *TOOL_FLAGS, *flags, "-cp", classpath, main, *arguments]


def command_of(name: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    """Returns the command line of one of Apache Kafka's tools, by the name of its script."""
    versions = VERSIONS.get(name, (APACHE_TOOLS,))
    classpath = ":".join(f"{apache_kafka(version)}/*" for version in versions)
    return java(classpath, TOOLS[name], *arguments, flags=flags)


def tool(name: str, *arguments: str, stdin: str = "", timeout_s: float = 120) -> str:
    """Runs one of Apache Kafka's tools to its end; returns its output. A non-zero exit code fails the test."""
    return run(command_of(name, *arguments), stdin=stdin.encode(), timeout_s=timeout_s).stdout.decode()


def compiled(source: str, version: str) -> str:
    """Returns the class path with `source` compiled against the Java client of one version."""
    return compiled_against(source, clients(version), version)


def compiled_against(source: str, jars: Path, label: str) -> str:
    """Returns the class path with `source` compiled against jars; `label` is their name in the cache."""
    text = (HERE / source).read_bytes()
    folder = JARS / f"classes-{label}-{hashlib.sha256(text).hexdigest()[:12]}"
    with locked(folder.name):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            run(["javac", "--release", "8", "-Xlint:-options", "-cp", f"{jars}/*", "-d", str(made), str(HERE / source)])
            made.rename(folder)
    return f"{folder}:{jars}/*"


def line_client(version: str, log: Path, *beside: str) -> LineClient:
    """Starts a JVM with the Java client of one version, which reads commands until it is closed. `beside` are sources
    of classes that its settings name."""
    classpath = ":".join(compiled(source, version) for source in ("Client.java", *beside))
    return LineClient(f"java {version}", java(classpath, "Client"), log)
