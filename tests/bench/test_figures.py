"""Tests medians, spreads, ratios, costs per unit of work, and the comparison with goals."""

from __future__ import annotations

import pytest

from bench.figures import Cpu, Sample, Spread, ToolResult, per_work, percentiles_ms, ratio, spread, summarise
from bench.goals import ITS_YOUTH, LIMIT, Goal, GoalVerdict, ageing, verdicts
from bench.results import PeerResult


def test_a_spread_is_the_median_between_the_extremes() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)


def test_a_summary_has_only_what_was_measured() -> None:
    summary = summarise([{"mb_per_s": 1.0, "p50_ms": 5.0}, {"mb_per_s": 3.0}])
    assert summary == {"mb_per_s": Spread(2.0, 1.0, 3.0, 2), "p50_ms": Spread(5.0, 5.0, 5.0, 1)}


def test_a_ratio_is_of_medians() -> None:
    ours, theirs = summarise([{"cpu_s_per_gb": 1.0}]), summarise([{"cpu_s_per_gb": 4.0}])
    assert ratio(ours, theirs, "cpu_s_per_gb") == 0.25


def test_there_is_no_ratio_to_nothing() -> None:
    ours, zero = summarise([{"cpu_s_per_gb": 1.0}]), summarise([{"cpu_s_per_gb": 0.0}])
    assert ratio(ours, zero, "cpu_s_per_gb") is None
    assert ratio(ours, {}, "cpu_s_per_gb") is None


def test_cost_is_per_gigabyte_and_per_million_records() -> None:
    sample = per_work(ToolResult(500_000, 500_000_000, 2.0, {"p50_ms": 1.5}), Cpu(1.0, 0.6))
    assert sample == {
        "cpu_s_per_million": 2.0,
        "cpu_s_per_gb": 2.0,
        "kernel_percent": 60.0,
        "records_per_s": 250_000,
        "mb_per_s": 250.0,
        "p50_ms": 1.5,
    }


def test_work_without_bytes_has_no_cost_per_gigabyte() -> None:
    assert set(per_work(ToolResult(100, 0, 1.0), Cpu(1.0, 0.0))) == {
        "cpu_s_per_million",
        "kernel_percent",
        "records_per_s",
    }


def test_percentiles_are_of_the_nearest_rank() -> None:
    taken_ns = [number * 1_000_000 for number in range(1_000, 0, -1)]
    assert percentiles_ms(taken_ns) == {"p50_ms": 501.0, "p99_ms": 991.0, "p999_ms": 1_000.0, "mean_ms": 500.5}


def row(**figures: float) -> PeerResult:
    return PeerResult("someone", [figures])


def test_a_cost_is_to_stay_below_its_goal_and_a_throughput_above() -> None:
    peers = {"odradek": row(cpu_s_per_gb=1.0, mb_per_s=90.0), "kafka": row(cpu_s_per_gb=4.0, mb_per_s=100.0)}
    assert list(verdicts("consume", ("cpu_s_per_gb", "mb_per_s"), peers)) == [
        GoalVerdict(Goal("cpu_s_per_gb", "kafka", 0.55), 0.25, True),
        GoalVerdict(Goal("mb_per_s", "kafka", 1.0), 0.9, False),
    ]


def test_cpu_is_to_stay_below_kfake_unless_the_load_says_otherwise() -> None:
    figures = {"cpu_s_per_gb": 1.0, "cpu_s_per_million": 1.0}
    peers = {name: row(**figures) for name in ("odradek", "kfake", "floor")}
    goals = {load: [one.goal for one in verdicts(load, tuple(figures), peers)] for load in ("produce", "produce-lz4")}
    assert goals == {
        "produce": [Goal("cpu_s_per_gb", "kfake", 0.8), Goal("cpu_s_per_gb", "floor", 2.0)],
        "produce-lz4": [Goal("cpu_s_per_gb", "kfake", 1.0)],
    }


def test_a_plain_limit_is_held_against_the_figure_itself() -> None:
    assert list(verdicts("start-up", ("ready_ms",), {"odradek": row(ready_ms=150.0)})) == [
        GoalVerdict(Goal("ready_ms", LIMIT, 150), 150.0, True)
    ]


def test_a_broker_with_tls_is_held_against_the_other_with_tls() -> None:
    costs = {"odradek": 1.0, "odradek-tls": 3.0, "kafka": 4.0, "kafka-tls": 10.0}
    peers = {name: row(cpu_s_per_gb=cost) for name, cost in costs.items()}
    assert list(verdicts("consume", ("cpu_s_per_gb",), peers)) == [
        GoalVerdict(Goal("cpu_s_per_gb", "kafka", 0.55), 0.25, True),
        GoalVerdict(Goal("cpu_s_per_gb", "kafka-tls", 0.4, "odradek-tls"), 0.3, True),
    ]


def test_a_long_run_is_held_against_its_own_first_tenth() -> None:
    samples: list[Sample] = [{"cpu_s_per_gb": 1.0 + 0.01 * number} for number in range(20)]
    [verdict] = verdicts("long-run", ("cpu_s_per_gb",), {"odradek": PeerResult("Odradek", samples)})
    assert verdict.goal == Goal("cpu_s_per_gb", ITS_YOUTH, 1.05)
    assert verdict.ratio == pytest.approx(1.185 / 1.005)
    assert not verdict.reached


def test_the_age_of_nothing_is_not_judged() -> None:
    assert ageing([], "cpu_s_per_gb") is None
    assert not list(verdicts("long-run", ("cpu_s_per_gb",), {"odradek": PeerResult("Odradek", [])}))


def test_a_goal_against_a_peer_that_did_not_run_is_not_judged() -> None:
    assert not list(verdicts("produce", ("cpu_s_per_gb",), {"odradek": row(cpu_s_per_gb=1.0)}))


def test_a_round_without_a_figure_is_told_unless_the_row_has_a_reason() -> None:
    assert row(mb_per_s=1.0).lacks(("mb_per_s", "p50_ms")) == ["p50_ms"]
    assert row(mb_per_s=1.0)._replace(reason="no such API").lacks(("p50_ms",)) == []
