"""Tests `odradek cluster`: its preparations, and the one-line errors for what it rejects."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cli.main import main
from coordinator.cluster.snapshot import SnapshotId, read_snapshot
from programs.cluster import commands
from programs.cluster.plan import NodePlan
from protocol.records.control import VotersRecord
from storage.disk import OsDisk
from storage.meta_properties import read_meta_properties


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[NodePlan]]:
    """Records the nodes of clusters in place of running them."""
    plans: list[Sequence[NodePlan]] = []

    def supervise(nodes: Sequence[NodePlan], environment: Mapping[str, str], assignments: Sequence[str]) -> int:
        plans.append(nodes)
        return 0

    monkeypatch.setattr(commands, "_supervise", supervise)
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)
    return plans


def cluster(data: Path, *words: str) -> int:
    return main(["cluster", "--data", str(data), "--listen", "127.0.0.1:0", *words])


def ids(data: Path, *names: str) -> list[object]:
    return [read_meta_properties(OsDisk(), str(data / name)) for name in names]


def test_a_new_directory_is_formatted_for_all_nodes(started: list[Sequence[NodePlan]], tmp_path: Path) -> None:
    assert cluster(tmp_path / "c", "--brokers", "2") == 0
    owners = [read_meta_properties(OsDisk(), plan.directory) for plan in started[0]]
    assert [owner and owner.node_id for owner in owners] == [0, 1, 2]
    assert len({owner and owner.cluster_id for owner in owners}) == 1
    assert (tmp_path / "c/controller/__cluster_metadata-0").is_dir()
    assert "process.roles=broker\n" in (tmp_path / "c/broker-2.properties").read_text()


def test_three_controllers_have_the_same_voters(started: list[Sequence[NodePlan]], tmp_path: Path) -> None:
    assert cluster(tmp_path, "--controllers", "3", "--brokers", "1") == 0
    names = ("controller", "controller-2", "controller-3")
    owners = [read_meta_properties(OsDisk(), str(tmp_path / name)) for name in names]
    checkpoints = [tmp_path / name / "__cluster_metadata-0" / SnapshotId(0, 0).file_name for name in names]
    quorums = [read_snapshot(OsDisk(), str(checkpoint)).quorum for checkpoint in checkpoints]
    voters = [next(record for record in quorum if isinstance(record, VotersRecord)) for quorum in quorums]
    assert voters[0] == voters[1] == voters[2]
    assert [(voter.voter_id, voter.voter_directory_id) for voter in voters[0].voters] == [
        (owner.node_id, owner.directory_id) for owner in owners if owner is not None
    ]
    assert cluster(tmp_path, "--controllers", "3", "--brokers", "1") == 0
    assert cluster(tmp_path, "--brokers", "1") == 1


def test_ids_and_ports_last_and_brokers_are_added(started: list[Sequence[NodePlan]], tmp_path: Path) -> None:
    cluster(tmp_path, "--brokers", "1")
    before = ids(tmp_path, "controller", "broker-1")
    assert cluster(tmp_path, "--brokers", "1") == 0
    assert cluster(tmp_path, "--brokers", "3") == 0
    assert ids(tmp_path, "controller", "broker-1") == before
    first, again, more = ([plan.settings["listeners"] for plan in plans] for plans in started)
    assert first == again == more[:2]
    assert len(more) == 4


def test_a_start_that_was_cut_short_goes_on(
    started: list[Sequence[NodePlan]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(commands, "_format", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        assert cluster(tmp_path) == 1
    cluster_id = json.loads((tmp_path / "cluster.json").read_text())["cluster.id"]
    assert cluster(tmp_path) == 0
    owner = read_meta_properties(OsDisk(), str(tmp_path / "controller"))
    assert owner is not None
    assert owner.cluster_id == cluster_id


def test_a_broker_whose_folder_is_gone_begins_anew(started: list[Sequence[NodePlan]], tmp_path: Path) -> None:
    import shutil

    cluster(tmp_path)
    before = ids(tmp_path, "broker-1", "broker-2")
    shutil.rmtree(tmp_path / "broker-2")
    assert cluster(tmp_path) == 0
    after = ids(tmp_path, "broker-1", "broker-2")
    assert after[0] == before[0]
    assert after[1] not in (None, before[1])


@pytest.mark.parametrize(("words", "problem"), [
    (("--brokers", "0"), "--brokers 0: a cluster has from 1 to 100"),
    (("--brokers", "101"), "--brokers 101: a cluster has from 1 to 100"),
    (("--controllers", "0"), "--controllers 0: a cluster has from 1 to 9"),
    (("--listen", "nowhere"), "--listen nowhere: is not HOST:PORT"),
    (("--set", "node.id=7"), "--set node.id: each node has its own"),
    (("--set", "num.partition=7"), "--set: num.partition: unknown option; did you mean num.partitions?"),
    (("--set", "x"), "--set x: expected NAME=VALUE"),
])  # fmt: skip
def test_arguments_at_fault_end_with_2_and_one_line(
    started: list[Sequence[NodePlan]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    problem: str,
) -> None:
    assert cluster(tmp_path, *words) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"odradek: {problem}")
    assert err.count("\n") == 1
    assert not started


def test_a_directory_of_another_shape_ends_with_1_and_one_line(
    started: list[Sequence[NodePlan]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster(tmp_path)
    assert cluster(tmp_path, "--brokers", "2") == 1
    err = capsys.readouterr().err
    assert "has 3 brokers, but --brokers is 2. To remove broker 3" in err
    assert err.count("\n") == 1
    assert len(started) == 1


def test_where_metrics_are_told_is_given_to_each_node(started: list[Sequence[NodePlan]], tmp_path: Path) -> None:
    assert cluster(tmp_path, "--brokers", "2", "--set", "odradek.metrics.listener=127.0.0.1:9404") == 0
    listeners = [plan.settings["odradek.metrics.listener"] for plan in started[0]]
    assert listeners == ["127.0.0.1:9404", "127.0.0.1:9405", "127.0.0.1:9406"]
    assert "odradek.metrics.listener=127.0.0.1:9406\n" in (tmp_path / "broker-2.properties").read_text()


def test_a_node_does_not_take_its_identity_from_the_environment() -> None:
    environment = commands.child_environment({
        "KAFKA_NODE_ID": "7", "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092", "KAFKA_LOG_DIRS": "/data",
        "KAFKA_ODRADEK_METRICS_LISTENER": "127.0.0.1:9404",
        "KAFKA_LOG_RETENTION_MS": "60000", "PATH": "/bin",
    })  # fmt: skip
    assert set(environment) == {"KAFKA_LOG_RETENTION_MS", "PATH", "PYTHONPATH"}


def test_a_port_in_use_ends_with_1_and_one_line(
    started: list[Sequence[NodePlan]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["cluster", "--data", str(tmp_path), "--listen", f"127.0.0.1:{port}"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"odradek: broker-1 cannot listen on 127.0.0.1:{port}: Address already in use; --listen")
    assert err.count("\n") == 1
    assert not started
