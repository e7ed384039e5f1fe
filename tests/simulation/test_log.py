"""Runs a log with any failures: flushed records survive, surviving records are those that were written, and readers are
unaffected.

A failing run is its seed: `make simulate SEEDS=17`.
"""

from __future__ import annotations

import pytest

from tests.simulation.log_world import LogWorld

STEPS = 120
SEEDS = range(200)
"""Seeds for about ten seconds; `make simulate SEEDS=0-9999` runs ten thousand."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_lives_through_anything(seed: int) -> None:
    LogWorld(seed).run(STEPS)


def test_a_seed_is_a_run() -> None:
    first = LogWorld(7)
    first.run(STEPS)
    second = LogWorld(7)
    second.run(STEPS)
    assert first.disk.calls == second.disk.calls
    assert [path for path, _ in first.disk.files()] == [path for path, _ in second.disk.files()]
    assert [bytes(file.data) for _, file in first.disk.files()] == [bytes(file.data) for _, file in second.disk.files()]


def test_everything_that_may_happen_happens() -> None:
    counts: dict[str, int] = {}
    for seed in range(30):
        world = LogWorld(seed)
        world.run(STEPS)
        for name, count in world.counts.items():
            counts[name] = counts.get(name, 0) + count
    assert all(counts.values())
    assert {"swapped in", "restart after a crash", "restart after a loss of power", "start from clean"} <= counts.keys()
