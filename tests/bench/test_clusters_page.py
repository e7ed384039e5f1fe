"""Tests the table of clusters in docs/benchmarks.md: it has every figure of every measured row, beside the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bench.clusters.cluster import FLAVOURS
from bench.clusters.page import clusters
from bench.clusters.rows import ROWS
from bench.figures import Sample
from bench.goals import BY_LOAD
from bench.results import LoadResult, PeerResult, save


def measured(folder: Path, name: str, figures: tuple[str, ...], samples: Mapping[str, Sequence[Sample]]) -> None:
    """Saves a row. A cluster without samples counts as failed."""
    peers = {
        cluster: PeerResult(
            FLAVOURS[cluster].title, [*rounds], None if rounds else "it did not start", not rounds, tuple(rounds[:1])
        )
        for cluster, rounds in samples.items()
    }
    row = ROWS[name]
    save(folder, LoadResult(name, row.title, "t", 1, 1, figures, "2026-11-22T01:02:03", "a machine", peers))


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    follow = ("follower_cpu_s_per_gb", "mb_per_s")
    measured(
        tmp_path,
        "cluster-follow",
        follow,
        {
            "odradek": [{"follower_cpu_s_per_gb": 1.0, "mb_per_s": 150.0}],
            "kafka": [{"follower_cpu_s_per_gb": 2.5, "mb_per_s": 100.0}],
            "odradek-alone": [],
        },
    )
    failover = ("p50_ms", "p99_ms", "errors")
    times = {
        "odradek": [{"p50_ms": 2_200.0, "p99_ms": 2_300.0, "errors": 1.0}],
        "kafka": [{"p50_ms": 2_000.0, "p99_ms": 4_600.0, "errors": 0.0}],
    }
    measured(tmp_path, "cluster-failover", failover, times)
    return clusters(tmp_path).splitlines()


def of_row(lines: list[str], name: str) -> list[list[str]]:
    """Returns the cells of a row's lines, without its title."""
    return [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| {ROWS[name].title} |")]


def test_each_cluster_is_beside_the_others(lines: list[str]) -> None:
    cost, throughput, _ = of_row(lines, "cluster-follow")
    assert cost == ["a follower's CPU per GB, s/GB", "2.500", "1.000", "–", "0.40", "≤ 0.45", "reached"]
    assert throughput[:5] == ["throughput, MB/s", "100.0", "150.0", "–", "1.50"]


def test_a_failover_is_held_against_apache_kafka_s_and_no_record_is_given_up(lines: list[str]) -> None:
    median, worst, errors, _ = of_row(lines, "cluster-failover")
    assert median[-3:] == ["1.10", "≤ 1", "**missed**"]
    assert worst[-3:] == ["0.50", "≤ 1", "reached"]
    assert errors == ["records given up", "0", "1", "–", "–", "≤ 0", "**missed**"]


def test_a_cluster_that_failed_is_told_with_its_reason(lines: list[str]) -> None:
    assert f"{ROWS['cluster-follow'].title}: {FLAVOURS['odradek-alone'].title}: it did not start" in lines


def test_nothing_is_made_up(tmp_path: Path) -> None:
    assert clusters(tmp_path) == "Nothing is measured.\n"


def test_every_row_has_a_goal() -> None:
    assert set(ROWS) <= set(BY_LOAD)
