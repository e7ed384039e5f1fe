"""Compares directories that `odradek format` and Apache Kafka's kafka-storage make with the same options: they are
equal, and either broker accepts them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bench.jars import APACHE_KAFKA, APACHE_TOOLS
from coordinator.cluster.snapshot import Snapshot, read_snapshot
from protocol.records.batch import iter_batches
from storage.disk import OsDisk
from tests.interop import jvm
from tests.interop.brokers import CLUSTER_ID, Odradek
from tests.interop.processes import free_port, run
from tests.interop.quorum import ONE_OF_EACH, ApacheNode
from tests.waiting import eventually

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
CREDENTIAL = 'SCRAM-SHA-512=[name=bob,iterations=8192,salt="N3E=",saltedpassword="YCE="]'
VOTERS = "100@127.0.0.1:19093:JEXY6aqzQY-32P5TStzaFg,101@two.example:19093:MvDxzVmcRsaTz33bUuRU6A"
CRC, ATTRIBUTES, TIMESTAMPS, PRODUCER_ID = 17, 21, 27, 43
"""Positions in the header of a batch."""
SETTINGS = {
    "process.roles": "controller",
    "node.id": "100",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:19093",
    "controller.quorum.bootstrap.servers": "127.0.0.1:19093",
}


def odradek_format(data: Path, settings: Mapping[str, str], *arguments: str) -> None:
    """Formats the directory with Odradek's own command."""
    file = data.with_name(f"{data.name}.properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in {**settings, "log.dirs": str(data)}.items()))
    run([Odradek.program, "format", "-t", CLUSTER_ID, "-c", str(file), *arguments])


def timeless(path: Path) -> list[tuple[object, ...]]:
    """Returns the bytes of a checkpoint's batches, without their CRCs and times."""
    data = path.read_bytes()
    return [
        (
            data[position : position + CRC],
            data[position + ATTRIBUTES : position + TIMESTAMPS],
            header.size_bytes if header.is_control else data[position + PRODUCER_ID : position + header.size_bytes],
        )
        for position, header in iter_batches(data)
    ]


def checkpoint(path: Path) -> Snapshot:
    """Returns the records of a checkpoint, without the time in its header."""
    records, quorum = read_snapshot(OsDisk(), str(path))
    return Snapshot(records, quorum[1:])


def apache_format(data: Path, version: str, *arguments: str) -> None:
    """Formats the directory with kafka-storage of a version."""
    data.mkdir()
    file = data.with_name(f"{data.name}.properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in {**SETTINGS, "log.dirs": str(data)}.items()))
    words = ("format", "-t", CLUSTER_ID, "-c", str(file), *arguments)
    run(jvm.java(f"{jvm.apache_kafka(version)}/*", jvm.TOOLS["kafka-storage"], *words))


def test_kafka_4_4_writes_the_same_records_into_one_file(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "odradek", tmp_path / "apache"
    arguments = ("--initial-controllers", VOTERS, "--add-scram", CREDENTIAL)
    odradek_format(ours, SETTINGS, *arguments)
    apache_format(theirs, APACHE_KAFKA, *arguments)
    assert not (theirs / "bootstrap.checkpoint").exists()
    together = checkpoint(theirs / CHECKPOINT)
    assert together.records == checkpoint(ours / "bootstrap.checkpoint").records
    assert together.quorum == checkpoint(ours / CHECKPOINT).quorum


@pytest.mark.parametrize("arguments", [
    ("--initial-controllers", VOTERS, "--add-scram", CREDENTIAL, "--release-version", "4.3"),
    ("--no-initial-controllers", "--release-version", "4.0", "--feature", "transaction.version=1"),
], ids=["voters", "older"])  # fmt: skip
def test_the_files_are_those_of_kafka_storage_4_3(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ours, theirs = tmp_path / "odradek", tmp_path / "apache"
    odradek_format(ours, SETTINGS, *arguments)
    apache_format(theirs, APACHE_TOOLS, *arguments)
    names = sorted(str(file.relative_to(theirs)) for file in theirs.rglob("*") if file.is_file())
    assert sorted(str(file.relative_to(ours)) for file in ours.rglob("*") if file.is_file()) == [".lock", *names]
    for name in names:
        if name.endswith(".checkpoint"):
            assert timeless(ours / name) == timeless(theirs / name)
            assert checkpoint(ours / name) == checkpoint(theirs / name)
    properties = [
        dict(re.findall(r"^([^#=]+)=(.*)$", (data / "meta.properties").read_text(), re.M)) for data in (ours, theirs)
    ]
    if "--initial-controllers" not in arguments:
        for one in properties:
            assert re.fullmatch(r"[\w-]{22}", one.pop("directory.id"))
    assert properties[0] == properties[1]


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[str]:
    """Yields the address of Apache Kafka's controller, on a directory that Odradek formats."""
    address = f"127.0.0.1:{free_port()}"
    settings = {
        **SETTINGS,
        **ONE_OF_EACH,
        "listeners": f"CONTROLLER://{address}",
        "controller.quorum.bootstrap.servers": address,
    }
    odradek_format(tmp_path / "controller", settings, "--standalone", "--add-scram", CREDENTIAL)
    node = ApacheNode(tmp_path / "controller", settings)
    node.start()
    yield address
    node.stop()
    node.forget()


def test_apache_kafka_and_odradek_start_on_directories_formatted_here(controller: str, tmp_path: Path) -> None:
    bootstrap = f"127.0.0.1:{free_port()}"
    joining = {
        **ONE_OF_EACH,
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": controller,
    }
    theirs = {**joining, "node.id": "1", "listeners": f"PLAINTEXT://{bootstrap}"}
    odradek_format(tmp_path / "broker-1", theirs)
    ours = {**joining, "node.id": "2"}
    odradek_format(tmp_path / "broker-2", ours)
    brokers: list[ApacheNode | Odradek] = [
        ApacheNode(tmp_path / "broker-1", theirs),
        Odradek(tmp_path / "broker-2", ours),
    ]
    try:
        brokers[0].start()
        # Asked while Apache Kafka is alone: the tool sends to any broker, and Odradek does not serve quotas of clients.
        described = jvm.tool("kafka-configs", "--bootstrap-server", bootstrap, "--describe", "--entity-type", "users")
        assert "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192" in described
        brokers[1].start()

        def listed() -> list[str]:
            return sorted(re.findall(r"^  broker (\d+) at", run(["kcat", "-b", bootstrap, "-L"]).stdout.decode(), re.M))

        eventually(listed, ["1", "2"])
    finally:
        for broker in brokers:
            broker.stop()
            broker.forget()
