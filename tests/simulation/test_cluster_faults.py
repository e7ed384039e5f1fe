"""The world `cluster` finds the faults that others had; without them the same courses break nothing.

Those that it cannot find, or that others find sooner, are in the table of docs/simulation.md, each with its test.
"""

from __future__ import annotations

import pytest

from tests.simulation.cluster.courses import (
    Course,
    leaders_are_alone,
    leaders_are_zombies,
    the_eligible_one_loses_its_power,
    two_fast_failovers,
)
from tests.simulation.cluster.planted import PLANTED, Planted
from tests.simulation.cluster.world import run_cluster


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.plant.__name__)
def test_a_fault_that_is_planted_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert any(run_cluster(seed, planted.course).breaches for seed in range(planted.tries))


@pytest.mark.parametrize(
    "course", [leaders_are_alone, leaders_are_zombies, the_eligible_one_loses_its_power, two_fast_failovers]
)
def test_what_does_harm_with_a_fault_does_none_without(course: Course) -> None:
    for seed in range(3):
        history = run_cluster(seed, course)
        assert not history.breaches, f"seed {seed}: {'; '.join(map(str, history.breaches))}"
