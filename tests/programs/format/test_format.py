"""Tests `odradek format`, `info` and `random-uuid`: the files that they write, and their one-line errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.disks.lock import DirectoryLock
from cli.main import main
from coordinator.cluster.snapshot import read_snapshot
from protocol.metadata_records.security import UserScramCredentialRecord
from protocol.records.control import VotersRecord
from protocol.types import uuid_from_text, uuid_to_text
from storage.disk import OsDisk
from storage.meta_properties import META_PROPERTIES, read_meta_properties

CLUSTER = "b2RyYWRlay1pbnRlcm9wLg"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
CONTROLLER = """\
process.roles=controller
node.id=100
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:19093
controller.quorum.bootstrap.servers=127.0.0.1:19093
"""
BROKER = """\
process.roles=broker
node.id=1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092
controller.quorum.bootstrap.servers=127.0.0.1:19093
"""
VOTERS = f"100@127.0.0.1:19093:{DIRECTORY},101@two.example:19093:MvDxzVmcRsaTz33bUuRU6A"
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def odradek(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line; returns its exit code, output and errors."""
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., str]:
    """Writes a file of options that names directories."""

    def write(text: str, *directories: str) -> str:
        file = tmp_path / "server.properties"
        paths = ",".join(str(tmp_path / name) for name in directories or ("data",))
        file.write_text(f"{text}log.dirs={paths}\n")
        return str(file)

    return write


def test_a_standalone_controller_is_the_voter_of_its_metadata(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    status, out, _ = odradek("format", "-t", CLUSTER, "-c", configure(CONTROLLER, "a", "b"), "--standalone")
    assert (status, out.splitlines()) == (0, [
        f"Formatting dynamic metadata voter directory {tmp_path}/a with metadata.version 4.4-IV2.",
        f"Formatting data directory {tmp_path}/b with metadata.version 4.4-IV2.",
    ])  # fmt: skip
    first, second = (read_meta_properties(OsDisk(), str(tmp_path / name)) for name in "ab")
    assert first is not None
    assert second is not None
    assert (first.cluster_id, first.node_id, second.cluster_id) == (CLUSTER, 100, CLUSTER)
    assert first.directory_id != second.directory_id
    voters = next(
        record
        for record in read_snapshot(OsDisk(), str(tmp_path / "a" / CHECKPOINT)).quorum
        if isinstance(record, VotersRecord)
    ).voters
    assert [(voter.voter_id, voter.voter_directory_id) for voter in voters] == [(100, first.directory_id)]
    assert [(one.name, one.host, one.port) for one in voters[0].endpoints] == [("CONTROLLER", "127.0.0.1", 19093)]
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()
    assert (tmp_path / "a/bootstrap.checkpoint").stat().st_size == (tmp_path / "b/bootstrap.checkpoint").stat().st_size


def test_one_of_several_controllers_has_the_directory_id_that_the_voters_give_it(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    assert odradek("format", "-t", CLUSTER, "-c", configure(CONTROLLER), "-I", VOTERS)[0] == 0
    properties = read_meta_properties(OsDisk(), str(tmp_path / "data"))
    assert properties is not None
    assert properties.directory_id == uuid_from_text(DIRECTORY)


@pytest.mark.parametrize(("text", "arguments", "kind"), [
    (BROKER, (), "metadata directory"),
    (BROKER, ("-N",), "metadata directory"),
    (BROKER, ("-I", VOTERS), "dynamic metadata directory"),
    (CONTROLLER, ("-N",), "metadata directory"),
    (f"{CONTROLLER}controller.quorum.voters=100@127.0.0.1:19093\n", (), "metadata directory"),
])  # fmt: skip
def test_a_node_that_is_no_voter_of_its_own_gets_a_new_directory_id(
    odradek: Command, configure: Callable[..., str], tmp_path: Path, text: str, arguments: tuple[str, ...], kind: str
) -> None:
    status, out, _ = odradek("format", "-t", CLUSTER, "-c", configure(text), *arguments)
    assert (status, out) == (0, f"Formatting {kind} {tmp_path}/data with metadata.version 4.4-IV2.\n")
    assert (tmp_path / "data" / CHECKPOINT).exists() is ("-I" in arguments)


def test_credentials_and_features_are_in_the_bootstrap_checkpoint(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    credential = "SCRAM-SHA-256=[name=alice,password=secret]"
    arguments = ("-r", "4.0", "-f", "transaction.version=1", "-S", credential)
    assert odradek("format", "-t", CLUSTER, "-c", configure(BROKER), *arguments)[0] == 0
    *features, alice = read_snapshot(OsDisk(), str(tmp_path / "data/bootstrap.checkpoint")).records
    assert [(one.name, one.feature_level) for one in features] == [  # type: ignore[attr-defined]
        ("metadata.version", 25), ("group.version", 1), ("transaction.version", 1),
    ]  # fmt: skip
    assert isinstance(alice, UserScramCredentialRecord)
    assert (alice.name, alice.mechanism, len(alice.salt), alice.iterations) == ("alice", 1, 16, 4096)


def test_what_is_formatted_stays_as_it_is(odradek: Command, configure: Callable[..., str], tmp_path: Path) -> None:
    odradek("format", "-t", CLUSTER, "-c", configure(BROKER, "a"))
    before = (tmp_path / "a" / META_PROPERTIES).read_text()
    both = configure(BROKER, "a", "b")
    status, _, err = odradek("format", "-t", CLUSTER, "-c", both)
    assert (status, err) == (
        1,
        f"odradek: Log directory {tmp_path}/a is already formatted. Use --ignore-formatted to ignore this directory "
        "and format the others.\n",
    )
    assert not (tmp_path / "b" / META_PROPERTIES).exists()
    status, out, _ = odradek("format", "-t", CLUSTER, "-c", both, "-g")
    assert (status, out) == (0, f"Formatting data directory {tmp_path}/b with metadata.version 4.4-IV2.\n")
    assert (
        odradek("format", "-t", CLUSTER, "-c", both, "-g")[1] == "All of the log directories are already formatted.\n"
    )
    assert (tmp_path / "a" / META_PROPERTIES).read_text() == before


@pytest.mark.parametrize(("cluster", "node", "problem"), [
    ("another", "1", f"belongs to another cluster (cluster.id {CLUSTER} in meta.properties, another is expected)"),
    (CLUSTER, "2", "owned by another broker (node.id 1 in meta.properties, this one is 2)"),
])  # fmt: skip
def test_what_belongs_to_another_is_refused_whatever_is_ignored(
    odradek: Command, configure: Callable[..., str], tmp_path: Path, cluster: str, node: str, problem: str
) -> None:
    file = configure(BROKER)
    odradek("format", "-t", CLUSTER, "-c", file)
    status, _, err = odradek("format", "-t", cluster, "-c", file, "-g", "--set", f"node.id={node}")
    assert (status, err) == (1, f"odradek: log.dirs {tmp_path}/data: {problem}\n")


def test_directories_in_use_are_refused(odradek: Command, configure: Callable[..., str], tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        status, _, err = odradek("format", "-t", CLUSTER, "-c", configure(BROKER))
        holder.kill()
    assert status == 1
    assert "is in use" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "data" / META_PROPERTIES).exists()


# A lock keeps other processes out, not the one that holds it.
LOCKING = f"""
import sys
from {DirectoryLock.__module__} import DirectoryLock
lock = DirectoryLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("text", "arguments", "problem"), [
    (CONTROLLER, (), "Because controller.quorum.voters is not set on this controller, you must specify one of"),
    (BROKER, ("-s",), "You can only use --standalone on a controller."),
    (f"{CONTROLLER}controller.quorum.voters=100@127.0.0.1:19093\n", ("-s",), "You cannot specify controller.quorum"),
    (f"{BROKER}controller.quorum.voters=100@127.0.0.1:19093\n", ("-I", VOTERS), "You cannot specify controller.quorum"),
    (CONTROLLER.replace("CONTROLLER://", "PLAINTEXT://"), ("-s",), "No controller listeners found"),
    (CONTROLLER.replace(":19093", ":0", 1), ("-s",), "listeners: CONTROLLER has port 0"),
    (CONTROLLER, ("-I", "100@127.0.0.1"), "--initial-controllers: '100@127.0.0.1' is not id@host:port:directory"),
    (BROKER, ("-f", "group.version"), "Can't parse feature=level string group.version: equals sign not found."),
    (BROKER, ("-f", "group.version=x"), "Can't parse feature=level string group.version=x: unable to parse x"),
    (BROKER, ("-f", "group.version=1", "-f", "group.version=0"), "--feature group.version is given twice."),
    (BROKER, ("-f", "kraft.version=1"), "Cannot set kraft.version to 1 unless KIP-853"),
    (BROKER, ("-r", "9.9"), "Unknown metadata.version '9.9'"),
    (BROKER, ("-r", "3.4", "-S", "SCRAM-SHA-256=[name=a,password=b]"), "SCRAM is only supported in"),
    (BROKER, ("-S", "SCRAM-SHA-256"), "Failed to find equals sign in SCRAM argument"),
    (BROKER, ("--set", "node.id=x"), "--set: Invalid value x for configuration node.id"),
    (BROKER, ("-t", "two words"), "--cluster-id: an id has only printable characters"),
    (BROKER, ("-t", ""), "--cluster-id: an id has only printable characters"),
    (BROKER, ("-c", "/nowhere"), "/nowhere: No such file or directory"),
])  # fmt: skip
def test_what_makes_no_node_is_refused_in_one_line(
    odradek: Command, configure: Callable[..., str], tmp_path: Path, text: str, arguments: tuple[str, ...], problem: str
) -> None:
    status, out, err = odradek("format", "-t", CLUSTER, "-c", configure(text), *arguments)
    assert (status, out) == (2, "")
    assert problem in err
    assert err.startswith("odradek: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_options_of_apache_kafka_that_a_broker_here_does_not_take_are_none_of_a_formats_business(
    odradek: Command, configure: Callable[..., str]
) -> None:
    text = CONTROLLER.replace("listeners=", "listener.security.protocol.map=CONTROLLER:SASL_SSL\nlisteners=")
    more = "sasl.mechanism.controller.protocol=SCRAM-SHA-512\nssl.keystore.location=/etc/kafka.jks\nmy.own=1\n"
    assert odradek("format", "-t", CLUSTER, "-c", configure(text + more), "-s")[0] == 0


def test_options_come_from_the_environment_too(
    odradek: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_PROCESS_ROLES", "broker")
    monkeypatch.setenv("KAFKA_NODE_ID", "7")
    monkeypatch.setenv("KAFKA_LOG_DIRS", str(tmp_path / "data"))
    assert odradek("format", "-t", CLUSTER)[0] == 0
    properties = read_meta_properties(OsDisk(), str(tmp_path / "data"))
    assert properties is not None
    assert properties.node_id == 7


def test_info_tells_whose_directories_these_are(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    odradek("format", "-t", CLUSTER, "-c", configure(BROKER, "a"))
    properties = read_meta_properties(OsDisk(), str(tmp_path / "a"))
    assert properties is not None
    assert properties.directory_id is not None
    directory_id = uuid_to_text(properties.directory_id)
    line = f"{tmp_path}/a: cluster.id={CLUSTER} node.id=1 directory.id={directory_id}\n"
    assert odradek("info", "-c", configure(BROKER, "a")) == (0, line, "")
    assert odradek("info", "-c", configure(BROKER, "a", "b")) == (1, f"{line}{tmp_path}/b: not formatted\n", "")
    (tmp_path / "a" / META_PROPERTIES).write_text("version=1\n")
    status, out, err = odradek("info", "-c", configure(BROKER, "a"))
    assert (status, out) == (1, "")
    assert "cluster.id" in err
    assert err.count("\n") == 1


def test_a_random_uuid_is_one(odradek: Command) -> None:
    status, out, _ = odradek("random-uuid")
    assert status == 0
    assert len(uuid_from_text(out.strip())) == 16


def test_a_directory_that_is_not_empty_is_told_and_its_files_stay(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    for name in ("orders-0", "orders-1", "lost+found"):
        (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    for number in range(7):
        (tmp_path / "b" / f"file{number}").touch()
    status, out, _ = odradek("format", "-t", CLUSTER, "-c", configure(BROKER, "a", "b", "c"))
    assert (status, out.splitlines()) == (0, [
        f"Log directory {tmp_path}/a is not empty; its content stays: orders-0, orders-1.",
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.4-IV2.",
        f"Log directory {tmp_path}/b is not empty; its content stays: file0, file1, file2, file3, file4 and 2 more.",
        f"Formatting data directory {tmp_path}/b with metadata.version 4.4-IV2.",
        f"Formatting data directory {tmp_path}/c with metadata.version 4.4-IV2.",
    ])  # fmt: skip
    assert (tmp_path / "a" / "orders-0").is_dir()


def test_a_format_that_is_refused_leaves_no_directory(
    odradek: Command, configure: Callable[..., str], tmp_path: Path
) -> None:
    odradek("format", "-t", CLUSTER, "-c", configure(BROKER, "a"))
    status, _, _ = odradek("format", "-t", CLUSTER, "-c", configure(BROKER, "a", "new/inner"))
    assert status == 1
    assert not (tmp_path / "new").exists()
