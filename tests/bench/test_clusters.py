"""The rows of clusters: assignments and figures hold together; a process is killed and started again."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from bench.clusters.cluster import BROKERS, FLAVOURS, BenchCluster
from bench.clusters.node import ClusterProcess, NotRunning
from bench.clusters.prober import Acknowledged, Prober
from bench.clusters.rows import ROWS, ClusterRow, led_by, spread_over
from bench.clusters.topics import Led
from bench.figures import FIGURES

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
