"""Runs a whole cluster with kills, power losses, cut links and a controller that dies: no record is lost, and all
replicas agree.

A failing run is its seed: `make simulate SEEDS=17 WORLDS=cluster`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.cluster.strikes import KINDS
from tests.simulation.cluster.world import run_cluster

SEEDS = range(20)
"""Seeds for about seven seconds; `make simulate WORLDS=cluster` runs thousands."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_keeps_what_it_promises(seed: int) -> None:
    history = run_cluster(seed)
    assert not history.breaches, "; ".join(map(str, history.breaches))


def test_a_run_is_its_seed() -> None:
    first, second = (run_cluster(3).trace for _ in range(2))
    assert len(first) > 100
    assert first == second


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS[:10]:
        counts += run_cluster(seed).counts
    expected = {"acknowledged by all", "acknowledged by one", "consumed", "ends", "unanswered", "idempotent NONE"}
    assert expected | {*KINDS} <= counts.keys()
