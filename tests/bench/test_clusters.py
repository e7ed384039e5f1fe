"""Tests the rows of the cluster benchmark: assignments and figures are consistent, and a process can be killed and
started again."""

from __future__ import annotations

import re
import resource
import sys
import time
from pathlib import Path

import pytest

from bench.clusters import makes
from bench.clusters.cluster import BROKERS, FLAVOURS, BenchCluster
from bench.clusters.makes import ApacheMake, OdradekMake
from bench.clusters.node import ClusterProcess, NotRunning
from bench.clusters.prober import Acknowledged, Prober
from bench.clusters.rows import ROWS, ClusterRow, led_by, spread_over
from bench.clusters.topics import Led
from bench.figures import FIGURES
from bench.peers.peer import Unavailable

SLEEPER = "import time, sys; sum(range(10**6)); print('it is ready', flush=True); time.sleep(60)"


def test_brokers_lead_in_turn_and_all_have_replicas() -> None:
    assignments = spread_over(7)
    assert [replicas[0] for replicas in assignments] == [1, 2, 3, 1, 2, 3, 1]
    assert {frozenset(replicas) for replicas in assignments} == {frozenset(BROKERS)}


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_a_row_shows_figures_that_there_are(row: ClusterRow) -> None:
    assert set(row.figures) <= set(FIGURES)
    assert row.name.startswith("cluster-")


def test_partitions_by_who_leads_them() -> None:
    partitions = {0: Led(1, frozenset()), 1: Led(2, frozenset()), 2: Led(1, frozenset())}
    assert led_by(partitions) == {1: [0, 2], 2: [1]}


def test_the_flavours_differ_in_their_options_by_nothing(tmp_path: Path) -> None:
    one, other = (BenchCluster(FLAVOURS[name], tmp_path, {"a": "b"}) for name in ("odradek", "kafka"))
    for node_id in (*BROKERS, 100):
        own, others = one._properties(node_id), other._properties(node_id)
        differing = {name for name in own if own[name] != others.get(name)}
        assert differing <= {"listeners", "log.dirs", "controller.quorum.bootstrap.servers"}
        assert own.keys() == others.keys()


def test_a_process_that_is_killed_goes_on_with_its_cost(tmp_path: Path) -> None:
    node = ClusterProcess(
        "sleeper", tmp_path / "log", lambda: [sys.executable, "-c", SLEEPER], re.compile(rb"^it is ready", re.MULTILINE)
    )
    try:
        for _ in range(2):
            before_s, before_ns = node.cpu_s(), time.monotonic_ns()
            node.start()
            node.wait_until_ready()
            assert node.kill() > before_ns
            assert node.cpu_s() > before_s
    finally:
        node.stop()


def test_a_process_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    node = ClusterProcess(
        "none", tmp_path / "log", lambda: [sys.executable, "-c", "print('why')"], re.compile(rb"^never")
    )
    node.start()
    with pytest.raises(NotRunning, match="why"):
        node.wait_until_ready()


def test_the_first_acknowledgement_counts_of_what_was_sent_after_the_kill() -> None:
    pytest.importorskip("confluent_kafka")
    prober = Prober("127.0.0.1:1", "t", 1)
    prober.acknowledged = [[Acknowledged(1, 2), Acknowledged(3, 11), Acknowledged(9, 40), Acknowledged(8, 30)]]
    assert prober.wait_after(5, [0]) == [30]
    assert prober.pauses_ns() == [29]


DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('it is ready', flush=True); time.sleep(60)"


def test_a_process_that_does_not_end_in_time_is_killed_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.clusters.node.STOP_TIMEOUT_S", 0.1)
    ready = re.compile(rb"^it is ready", re.MULTILINE)
    node = ClusterProcess("deaf", tmp_path / "log", lambda: [sys.executable, "-c", DEAF], ready)
    node.start()
    node.wait_until_ready()
    assert not node.stop()
    assert node.stop(), "there is nothing left to stop"


def test_apache_kafka_is_not_measured_where_it_would_run_out_of_descriptors_or_mappings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "max_map_count").write_text("65530\n")
    monkeypatch.setattr(makes, "MAX_MAP_COUNT", tmp_path / "max_map_count")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 20_000))
    ApacheMake().require_room(10_000)
    with pytest.raises(Unavailable, match=r"ulimit -Hn is 20000, vm\.max_map_count 65530"):
        ApacheMake().require_room(19_000)
    OdradekMake().require_room(1_000_000)
