"""Runs Apache Kafka's tools and Java clients of all versions, in JVMs that are as small as possible."""

from __future__ import annotations

import hashlib
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path

from bench.jars import APACHE_KAFKA, APACHE_TOOLS, JARS, TOOL_FLAGS, locked, resolve
from bench.jars import apache_kafka as apache_kafka  # tests look it up here
from tests.interop.processes import LineClient, Server, free_port, run

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

RECORDED_WITHIN_S = 180
"""Timeout of the start, and of the end, of the broker whose classes are recorded."""

VERSIONS = {"kafka-storage": (APACHE_KAFKA,), "kafka-features": (APACHE_KAFKA, APACHE_TOOLS)}
"""The versions of the classes of tools, first to last. kafka-features has the releases of the newest."""


@cache
def clients(version: str) -> Path:
    """Returns the jars of the Java client of one version."""
    return resolve(f"clients-{version}", HERE / "clients.xml", f"-Dkafka.version={version}")


def java(classpath: str, main: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    for version in (APACHE_KAFKA, APACHE_TOOLS):
        if classpath.startswith(classpath_of(version)):
            recorded_classes()
            flags = (f"-XX:SharedArchiveFile={archive(version)}", *flags)
    return java_without_archive(classpath, main, *arguments, flags=flags)


def java_without_archive(classpath: str, main: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    # Whether an archive of classes is used is silent: the tools' output is compared.
    return ["java", *TOOL_FLAGS, "-Xlog:cds*=off", *flags, "-cp", classpath, main, *arguments]


def classpath_of(version: str) -> str:
    """Returns the class path of a version of Apache Kafka, whose jars are there once `apache_kafka` was called."""
    return f"{JARS / f'apache-kafka-{version}'}/*"


def archive(version: str) -> Path:
    """Returns the archive of a version's classes for the JVM. Only the build of Java that made it can use it."""
    program = shutil.which("java")
    assert program, "the tests need java: a JDK 17"
    made_at_s = int(Path(program).resolve().stat().st_mtime)
    return JARS / f"apache-kafka-{version}" / f"classes-{made_at_s}.jsa"


@cache
def recorded_classes() -> None:
    """Records once which classes a broker of Apache Kafka and a tool load, into archives for their next starts: mapped
    classes halve the processor time of a start. Java records a process that has done its work, so this is a broker that
    has answered a tool."""
    broker, tools = archive(APACHE_KAFKA), archive(APACHE_TOOLS)
    with locked("archives"):
        if broker.exists() and tools.exists():
            return
        apache_kafka(APACHE_KAFKA), apache_kafka(APACHE_TOOLS)
        with tempfile.TemporaryDirectory(prefix="archives-") as folder:
            record(Path(folder), broker, tools)


def record(folder: Path, broker: Path, tools: Path) -> None:
    """Runs a broker and a tool, which write the archives when they end."""
    address, controller = (f"127.0.0.1:{free_port()}" for _ in range(2))
    properties = folder / "server.properties"
    properties.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={folder / 'data'}\n"
        f"controller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://{address},CONTROLLER://{controller}\ncontroller.quorum.voters=1@{controller}\n"
    )
    classpath = classpath_of(APACHE_KAFKA)
    cluster = ("format", "-t", "b2RyYWRlay1hcmNoaXZlcw", "-c", str(properties))
    run(java_without_archive(classpath, TOOLS["kafka-storage"], *cluster))
    new = {made: folder / f"{made.parent.name}.jsa" for made in (broker, tools)}
    flags = {made: (f"-XX:ArchiveClassesAtExit={file}",) for made, file in new.items()}
    server = Server("apache kafka", folder / "server.log")
    verbose = "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"
    command = java_without_archive(classpath, "kafka.Kafka", str(properties), flags=(*flags[broker], verbose))
    server.launch(command, r"Kafka Server started", RECORDED_WITHIN_S)
    try:
        words = ("--bootstrap-server", address, "--list")
        run(java_without_archive(classpath_of(APACHE_TOOLS), TOOLS["kafka-topics"], *words, flags=flags[tools]))
        server.signal(signal.SIGTERM)
        server.wait(RECORDED_WITHIN_S)
    finally:
        server.forget()
    for made, file in new.items():
        shutil.move(file, made.with_suffix(".new"))  # a copy, if the temporary folder is on another disk
        made.with_suffix(".new").rename(made)


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
